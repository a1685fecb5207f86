// What of a simulated region survives a power cut, word by word.
//
// The visible bytes stand in the region. Here stand, for each word that has been changed since it was last
// durable, the values that it had, in order, whoever's store, WRITE or atomic gave them:
//
//   values   | durable | 2nd | 3rd | ... | visible |
//                                ^
//                                flushed: the one that the next drain makes durable
//
// What the word holds after a power cut is one of these, for every word by itself: a cache may write a line
// back at any time, and need not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"

namespace farside::fabric::sim {

class DurableWords {
 public:
  // The aligned word at this offset is another one now.
  void Changed(uint64_t offset, uint64_t old, uint64_t now);
  // Whole lines, with what was stored in them so far.
  void Flush(uint64_t offset, uint64_t size);
  // All that was flushed is durable.
  void Drain();
  // Leaves in `memory` what survives, and all of that is durable. Returns how many words have fallen back.
  size_t CutPower(std::span<std::byte> memory, Random& random);

  // What a word may be after a power cut, beside what it is now; for tests. Empty: nothing but that.
  std::vector<uint64_t> ValuesOf(uint64_t offset) const;

 private:
  // Of one word. A word whose values would be more is simulated more kindly than the contract is.
  static constexpr size_t kMostValues = 64;

  struct History {
    std::vector<uint64_t> values;
    size_t flushed = 0;
  };
  std::map<uint64_t, History> histories_;  // by offset
  std::set<uint64_t> flushed_;             // offsets of words of which a value was flushed
};

}  // namespace farside::fabric::sim
