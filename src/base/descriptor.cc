#include "base/descriptor.h"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <utility>

namespace farside {

// All descriptors that a child of fork closes. Global, since a fork concerns all of the process.
class DescriptorList {
 public:
  static DescriptorList& Get() {
    // Never destroyed: static objects may have descriptors.
    static auto* const list = new DescriptorList();
    return *list;
  }

  std::mutex& mutex() { return mutex_; }

  void Add(Descriptor& descriptor) {
    descriptor.previous_ = &head_;
    descriptor.next_ = head_.next_;
    head_.next_->previous_ = &descriptor;
    head_.next_ = &descriptor;
  }
  static void Remove(Descriptor& descriptor) {
    descriptor.previous_->next_ = descriptor.next_;
    descriptor.next_->previous_ = descriptor.previous_;
    descriptor.next_ = descriptor.previous_ = nullptr;
  }

 private:
  DescriptorList() {
    head_.next_ = head_.previous_ = &head_;
    ::pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); }, [] { Get().EnterChild(); });
  }

  void EnterChild() {
    while (head_.next_ != &head_) {
      Descriptor& descriptor = *head_.next_;
      Remove(descriptor);
      ::close(std::exchange(descriptor.number_, -1));
    }
    mutex_.unlock();
  }

  std::mutex mutex_;  // of the list, and of the numbers that are in it
  Descriptor head_;   // of the ring of all others
};

ForkDelay::ForkDelay() { DescriptorList::Get().mutex().lock(); }
ForkDelay::~ForkDelay() { DescriptorList::Get().mutex().unlock(); }

void Descriptor::List(const ForkDelay&) {
  if (number_ >= 0) DescriptorList::Get().Add(*this);
}

void Descriptor::Unlist(const ForkDelay&) {
  if (next_ != nullptr) DescriptorList::Remove(*this);
}

Descriptor::Descriptor(int number, InChild in_child) : number_(number) {
  if (number < 0 || in_child == InChild::kKept) return;
  const ForkDelay delay;
  List(delay);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this == &other || (number_ < 0 && other.number_ < 0)) return *this;
  const ForkDelay delay;
  const bool closed_here = next_ != nullptr;
  const bool closed_there = other.next_ != nullptr;
  Unlist(delay);
  other.Unlist(delay);
  std::swap(number_, other.number_);
  if (closed_there) List(delay);
  if (closed_here) other.List(delay);
  return *this;
}

void Descriptor::Close() {
  if (number_ < 0) return;
  const ForkDelay delay;
  Unlist(delay);
  ::close(std::exchange(number_, -1));
}

}  // namespace farside
