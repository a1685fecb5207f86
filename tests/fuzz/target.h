// A fuzzer of Farside is one file *_fuzz.cc with the two functions of this header, Try and Seeds.
//
// The program farside_fuzz_NAME is that file with driver.cc, and needs no other compiler. libFuzzer brings a
// driver of its own, which calls Try through libfuzzer.cc (docs/testing.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace farside::fuzz {

using Bytes = std::vector<uint8_t>;

class Input;

// Tries one input, which may have any bytes. If something is wrong, it ends the process (Require).
void Try(Input input);
// A few good inputs, from which the driver makes others by chance.
std::vector<Bytes> Seeds();

// Ends the process if it does not hold, also where asserts are compiled out.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: it does not hold that %s\n", what);
  std::abort();
}

inline Bytes BytesOf(std::string_view text) { return Bytes(text.begin(), text.end()); }
inline void AppendBytes(Bytes& to, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) to.push_back(static_cast<uint8_t>(byte));
}
template <class T>
void Append(Bytes& to, const T& object) {
  AppendBytes(to, std::as_bytes(std::span(&object, 1)));
}

// Takes an input apart from its front. What is not there is zero.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::span<const uint8_t> rest() const { return rest_; }
  template <class T>
  T Take() {
    T object{};
    const std::span<const uint8_t> bytes = TakeBytes(sizeof object);
    if (!bytes.empty()) std::memcpy(&object, bytes.data(), bytes.size());
    return object;
  }
  // So many, or what is left.
  std::span<const uint8_t> TakeBytes(size_t most) {
    const std::span<const uint8_t> taken = rest_.first(most < rest_.size() ? most : rest_.size());
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace farside::fuzz
