// A piece of memory that grows and keeps what is in it. Large pieces are pages of their own, which the kernel
// moves by changing its tables: to grow copies nothing, and no page is touched before bytes come to stand in
// it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace farside::fabric::tcp {

class GrowingMemory {
 public:
  GrowingMemory() = default;
  GrowingMemory(GrowingMemory&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  GrowingMemory& operator=(GrowingMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GrowingMemory() { Release(); }

  std::byte* get() const { return at_; }
  size_t bytes() const { return bytes_; }

  // Throws std::bad_alloc, and is as it was then.
  void GrowTo(size_t bytes) {
    void* larger = nullptr;
    if (IsLarge(bytes_)) {
      larger = ::mremap(at_, bytes_, bytes, MREMAP_MAYMOVE);
    } else if (IsLarge(bytes)) {
      larger = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else {
      larger = std::realloc(at_, bytes);
      if (larger == nullptr) larger = MAP_FAILED;
    }
    if (larger == MAP_FAILED) throw std::bad_alloc();
    if (IsLarge(bytes) && !IsLarge(bytes_) && bytes_ != 0) {
      std::memcpy(larger, at_, bytes_);
      std::free(at_);
    }
    at_ = static_cast<std::byte*>(larger);
    bytes_ = bytes;
  }
  void Release() {
    if (IsLarge(bytes_)) {
      ::munmap(at_, bytes_);
    } else {
      std::free(at_);
    }
    at_ = nullptr;
    bytes_ = 0;
  }

 private:
  static constexpr size_t kMostOnHeap = size_t{128} << 10;
  static constexpr bool IsLarge(size_t bytes) { return bytes > kMostOnHeap; }

  std::byte* at_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace farside::fabric::tcp
