// Seeded randomness: the same numbers from the same seed on every platform and in every release, so
// that a seed in a failure report replays the run. Golden values in random_test.cc hold it to that.
//
// The generator is xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", 2018); its state is filled by splitmix64, as its authors advise. Fast and well mixed,
// but predictable: never use it for secrets.
//
// The standard distributions are not used, because their output differs between libraries.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>

namespace farside {

// One step of splitmix64: advances `state` and returns a well mixed word.
constexpr uint64_t SplitMix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// Owned by one thread. A copy continues with the same numbers as the original; use Fork for others.
class Random {
 public:
  explicit constexpr Random(uint64_t seed) : seed_(seed) {
    for (uint64_t& word : state_) word = SplitMix64(seed);
  }

  // The seed that makes this generator again; print it in failure reports.
  constexpr uint64_t seed() const { return seed_; }

  // Uniform over all 64-bit words.
  constexpr uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform over 0 .. n-1, n > 0. Unbiased: multiply-shift with rejection (Lemire, "Fast random integer
  // generation in an interval", 2019). A second draw is needed with probability below n / 2^64, so for
  // the small n of everyday use this is one multiplication and one branch that is never taken.
  constexpr uint64_t Below(uint64_t n) {
    assert(n > 0);
    Wide product = Wide{Next()} * n;
    if (static_cast<uint64_t>(product) < n) [[unlikely]] {
      const uint64_t excess = (0 - n) % n;  // 2^64 mod n
      while (static_cast<uint64_t>(product) < excess) product = Wide{Next()} * n;
    }
    return static_cast<uint64_t>(product >> 64);
  }

  // Uniform over lo .. hi, both included, lo <= hi.
  constexpr uint64_t Between(uint64_t lo, uint64_t hi) {
    assert(lo <= hi);
    const uint64_t distance = hi - lo;
    if (distance == std::numeric_limits<uint64_t>::max()) return Next();
    return lo + Below(distance + 1);
  }

  // True with probability numerator / denominator; always true if numerator >= denominator.
  // It draws even when the answer is certain, so that turning a fault off (0 in n) or fully on does
  // not shift the numbers that everything after it sees.
  constexpr bool Chance(uint32_t numerator, uint32_t denominator) {
    assert(denominator > 0);
    return Below(denominator) < numerator;
  }

  // 0 .. max, where every bit length from 0 to that of max is equally likely, and every value within a
  // length too. For sizes and delays that should be small, medium and huge equally often.
  constexpr uint64_t LogUniform(uint64_t max) {
    const uint64_t length = Below(static_cast<uint64_t>(std::bit_width(max)) + 1);
    if (length == 0) return 0;
    const uint64_t lo = uint64_t{1} << (length - 1);
    return Between(lo, std::min(max, lo + (lo - 1)));
  }

  // An independent generator for the given stream. It depends on the seed and the stream number alone:
  // not on how much was drawn here, and nothing is drawn. So a component keeps its numbers when another
  // one starts to draw more. For one seed, different streams never share a seed.
  constexpr Random Fork(uint64_t stream) const {
    uint64_t state = seed_ ^ kForkSalt;
    state = SplitMix64(state) + stream;  // mixed before the addition: seed 1 stream 2 is not seed 2 stream 1
    return Random(SplitMix64(state));
  }

 private:
  __extension__ using Wide = unsigned __int128;

  static constexpr uint64_t kForkSalt = 0x6661727369646521;  // "farside!"; keeps Fork apart from the seeding

  uint64_t seed_;
  std::array<uint64_t, 4> state_{};  // never all zero: splitmix64 does not repeat itself
};

}  // namespace farside
