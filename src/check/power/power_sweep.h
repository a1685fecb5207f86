// What a power cut may leave of the memory of a node, at every moment of a script of operations: the
// exhaustive counterpart of the random cuts in fabric/sim/durable_words.h, written separately so that a test
// can compare both.
//
//   PowerSweep sweep(bytes_of_an_empty_table);
//   const auto counts = sweep.Run({insert_a, update_a, insert_b},
//                                 [&](std::span<std::byte> survived, size_t acknowledged, size_t begun) {
//     // Open the table in `survived`: it must hold what the first `acknowledged` operations did, and what
//     // the one after them did or did not, if begun > acknowledged. The bytes may be changed.
//   });
//
// There is no fabric: an operation is called with the memory of the node, and does what its client and its
// handler would. What a client WRITEs is a store that is not flushed.
//
// INVARIANT power/1: every state that a cut may leave between two drains is visited by the later one, before
// it takes effect. For then each line has all versions that it had in between, and a state in which some of
// the last stores are missing is that of a cut before them. The end of an operation is looked at, too, since
// from then on more is promised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/random.h"
#include "check/power/pending_lines.h"
#include "check/power/survivors.h"
#include "fabric/service.h"

namespace farside::check {

class PowerSweep {
 public:
  using Operation = std::function<void(fabric::NodeMemory& memory)>;
  // `acknowledged` operations of the script have ended, and `begun` have begun: as many, or one more.
  using Check = std::function<void(std::span<std::byte> survived, size_t acknowledged, size_t begun)>;

  struct Counts {
    uint64_t points = 0;    // moments that were looked at
    uint64_t complete = 0;  // of them: every state, word by word
    uint64_t states = 0;    // calls of the check
    fabric::FlushCounts flushed;
  };

  // All of `initial`, which are whole lines, is durable. The seed says what is sampled.
  explicit PowerSweep(std::span<const std::byte> initial, SurvivorLimits limits = {}, uint64_t seed = 1);

  // Runs the operations one after the other, on the memory as it is; a second script goes on where the first
  // one has ended, cuts left aside.
  Counts Run(const std::vector<Operation>& script, const Check& check);
  // For a check that has seen enough: the script runs on, and no further state is checked.
  void Stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // What is visible.
  std::span<const std::byte> bytes() const { return visible_; }

 private:
  class Memory;

  void CheckOutcomes(size_t acknowledged, size_t begun, const Check& check, Counts& counts);

  const SurvivorLimits limits_;
  Random random_;
  std::vector<std::byte> visible_;
  std::vector<std::byte> survived_;  // what the check gets
  PendingLines pending_;
  bool stopped_ = false;
};

}  // namespace farside::check
