// Typed bit fields of a 64-bit word. Far memory has no C++ bit-fields, whose order is the compiler's
// choice: a layout names its fields and asserts that they tile the word, so that every bit has exactly
// one meaning and the unused ones are named too.
//
//   using Owner      = Field<0, 16>;
//   using Unused     = Field<16, 16>;
//   using Generation = Field<32, 32>;
//   static_assert(TilesWord<Owner, Unused, Generation>());
//
//   word = Owner::Set(word, 7);  // the other fields keep their bits
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>

namespace farside {

// Bits kShift .. kShift + kWidth - 1, counted from the least significant one.
template <int kShift, int kWidth>
struct Field {
  static_assert(kShift >= 0 && kShift < 64, "a field starts inside the word");
  static_assert(kWidth >= 1 && kWidth <= 64, "a field has at least one bit");
  static_assert(kShift + kWidth <= 64, "a field ends inside the word");

  static constexpr uint64_t kMax = ~uint64_t{0} >> (64 - kWidth);  // the largest value
  static constexpr uint64_t kMask = kMax << kShift;                // its bits, in place

  static constexpr uint64_t Get(uint64_t word) { return (word >> kShift) & kMax; }

  // `word` with this field replaced. A value that does not fit is a bug of the caller.
  static constexpr uint64_t Set(uint64_t word, uint64_t value) {
    assert(value <= kMax);
    return (word & ~kMask) | (value << kShift);
  }
};

// True if the fields cover all 64 bits exactly once: no gap and no overlap, in any order.
template <class... Fields>
consteval bool TilesWord() {
  constexpr uint64_t covered = (uint64_t{0} | ... | Fields::kMask);
  constexpr int bits = (0 + ... + std::popcount(Fields::kMask));
  return covered == ~uint64_t{0} && bits == 64;  // all are covered by 64 bits: none of them twice
}

}  // namespace farside
