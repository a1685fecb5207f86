// Reading all places where a key may stand.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/shard/context.h"
#include "index/shard/unit_locks.h"
#include "index/shard/unit_reader.h"
#include "index/shard/view.h"

namespace farside::index::shard {

class ViewReader {
 public:
  ViewReader(UnitReader& units, UnitLocks& locks) : units_(units), locks_(locks) {}

  // For a change: all levels in one trip. The bucket is complete then.
  Task<Done> ReadView(const KeyAccess& at, View& view);
  // After ReadView, for an operation that needs levels 2 and 3: reads what is missing of them.
  Task<Done> EnsureOverflows(const KeyAccess& at, View& view);
  // Levels 2 and 3 alone: both choices in one trip, as a rule.
  Task<Done> ReadOverflows(const KeyAccess& at, View& view);
  // The nodes behind choices that were read and decide.
  static Task<Done> ReadNodesOf(const KeyAccess& at, View& view);

  // Takes the lock of the key's unit and reads all places of the key behind it, in one trip.
  Task<Done> LockView(const KeyAccess& at, View& view);
  void UnlockView(const KeyAccess& at, const View& view);
  // Whether the view, read under the lock, is all that there is to know about the key.
  static bool IsUpToDate(const KeyAccess& at, const View& view, bool with_overflow);

 private:
  // Reads again, one by one, the choices that do not decide.
  Task<Done> ClassifyOverflows(const KeyAccess& at, View& view);

  UnitReader& units_;
  UnitLocks& locks_;
};

// For an insert that expects to split its unit, from `version` on: the choices before and after their own
// splits.
class Choices {
 public:
  Choices(const KeyAccess& at, uint32_t version, View& view) : at_(at), version_(version), view_(view) {}

  void AddReads(std::vector<fabric::ReadIntoVerb>& reads);
  // They were read: takes the lines that count to the view.
  void Take();
  // The same by a trip of its own.
  Task<Done> Fetch();

 private:
  const KeyAccess& at_;
  const uint32_t version_;
  View& view_;
  std::array<Line, 2> above_;  // of the units that those of the next version come from
};

}  // namespace farside::index::shard
