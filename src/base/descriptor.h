// A file descriptor with an owner, which a child of fork does not have.
//
// If a child had it too, a connection would not end with the process that made it, and the lock of a file
// would not either. So the child closes it before fork returns there (pthread_atfork), and its copy of the
// owner has none any more: whatever else the child opens cannot be mistaken for it.
#pragma once

#include <cstdint>

namespace farside {

// While it exists, no other thread forks: for what must be closed to children from the first moment. Have it
// for a moment only, and never two in one thread.
class ForkDelay {
 public:
  ForkDelay();
  ForkDelay(const ForkDelay&) = delete;
  ForkDelay& operator=(const ForkDelay&) = delete;
  ~ForkDelay();
};

class Descriptor {
 public:
  enum class InChild : uint8_t { kClosed, kKept };

  Descriptor() = default;
  explicit Descriptor(int number, InChild in_child = InChild::kClosed);
  Descriptor(int number, const ForkDelay& delay) : number_(number) { List(delay); }
  // The result of `make`, such as ::socket: no fork can come in between.
  template <class Make>
  static Descriptor From(Make make) {
    const ForkDelay delay;
    return Descriptor(make(), delay);
  }
  Descriptor(Descriptor&& other) noexcept { *this = static_cast<Descriptor&&>(other); }
  // Exchanges the two.
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { Close(); }

  bool open() const { return number_ >= 0; }
  int get() const { return number_; }
  void Close();

 private:
  friend class DescriptorList;

  void List(const ForkDelay&);
  void Unlist(const ForkDelay&);

  // Mutable: a child closes const ones, too.
  mutable int number_ = -1;
  mutable Descriptor* next_ = nullptr;  // in the list of all that children close; null: it is in none
  mutable Descriptor* previous_ = nullptr;
};

}  // namespace farside
