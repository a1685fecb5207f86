// Finding the unit that decides about a number, while other clients split units.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "farside/result.h"
#include "farside/task.h"
#include "index/shard/bucket.h"
#include "index/shard/context.h"
#include "index/shard/unit_locks.h"

namespace farside::index::shard {

// What a READ of a unit says to an operation that looks for a number.
enum class UnitStatus : uint8_t {
  kDecides,    // what is there is what there is
  kAbove,      // not split yet: the unit that it will be split from decides
  kTorn,       // a split came between its lines
  kNewer,      // than the directory
  kSplitPast,  // split already, and the number moved to another unit
};
UnitStatus Classify(const Partition& part, uint64_t number, uint64_t unit, std::span<const Line> lines);
inline bool Decides(const KeyAccess& at, Candidate candidate, const Overflow& overflow) {
  return Classify(at.part, at.number(candidate), overflow.unit, std::span(&overflow.line, 1)) ==
         UnitStatus::kDecides;
}

// In careful mode: the unit that the number will move to; nothing if it stays.
std::optional<uint64_t> NewUnitOf(const Partition& part, uint64_t number);

// The error for a unit whose lines do not fit together, although no client splits it.
Error HalfSplitForever(const Partition& part, uint64_t unit);

// READs the nodes behind a line of level 2. What a link names was there when the line was read, and the pin
// keeps it.
Task<Done> ReadNodes(Access at, Overflow& overflow);

class UnitReader {
 public:
  explicit UnitReader(UnitLocks& locks) : locks_(locks) {}

  // READs the bucket of level 1 that decides about a number, wherever its splits have come to.
  Task<Done> ReadBucket(Access at, uint64_t number, Bucket& bucket);
  // The same for a line of level 2, without its nodes.
  Task<Done> ReadOverflow(Access at, uint64_t number, Overflow& overflow);

 private:
  // Why a search begins anew: a unit that says that it has moved, or that the directory is old.
  struct Beginning {
    uint64_t unit = 0;
    uint32_t version = 0;   // of the unit
    uint64_t progress = 0;  // of the directory, which was read since
    friend bool operator==(const Beginning&, const Beginning&) = default;
  };
  // A unit that is looked for, in level 1 or level 2.
  struct Wanted {
    const Candidate candidate;
    const uint64_t number;
    const std::span<Line> lines;  // as read
    uint64_t& unit;               // that the lines are of
    uint32_t level = 0;           // the version whose unit is read
    int torn = 0;                 // READs in a row that a split came between
    int helped_in_vain = 0;
    Beginning last = {};  // what the search has begun anew from
    int same = 0;         // how often in a row
  };
  // What a READ of the wanted unit came to.
  enum class Look : uint8_t {
    kClassify,  // the lines are to be classified
    kDecided,   // the unit above decides, and its lines are here
    kAgain,     // the directory was read anew
  };
  Task<Done> ReadUnit(Access at, Wanted wanted);
  Task<Look> LookAtUnit(Access at, Wanted& wanted);
  static Status BeginAnew(Access at, Wanted& wanted);
  Task<Done> GoAbove(Access at, Wanted& wanted);
  Task<Done> AwaitWhole(Access at, Wanted& wanted);
  Task<uint32_t> NearestAbove(Access at, const Wanted& wanted);

  UnitLocks& locks_;
};

}  // namespace farside::index::shard
