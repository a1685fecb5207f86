// Memory from the kernel: anonymous, zeroed, and given page by page when it is first touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "farside/result.h"

namespace farside::fabric::memory {

class Mapping {
 public:
  // Address space for `bytes` (more than 0). Large ones ask for huge pages, which spare most of the misses of
  // the TLB; whether the kernel gives them is its business.
  static Result<Mapping> Create(uint64_t bytes);

  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  // Aligned to a page.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace farside::fabric::memory
