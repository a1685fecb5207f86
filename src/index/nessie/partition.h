// The part of a table that lives on one node, as one client knows it: how far it has grown
// (index/kit/growing_partition.h), where its slots are, and what operations have met in them.
#pragma once

#include <cstdint>

#include "fabric/address.h"
#include "index/kit/growing_partition.h"
#include "index/kit/growing_partitions.h"
#include "index/kit/tendency.h"
#include "index/nessie/layout.h"
#include "index/nessie/options.h"
#include "pool/client.h"

namespace farside::index::nessie {

class Partition final : public GrowingPartition {
 public:
  Partition(const Options& options, pool::PoolClient& pool, fabric::FarAddr root);

  const Shape& shape() const { return shape_; }
  fabric::FarAddr SlotAt(uint64_t slot) const {
    const size_t segment = shape_.SegmentOf(slot);
    return fabric::FarAddr(node(),
                           directory().bases[segment] + (slot - shape_.FirstSlot(segment)) * sizeof(Word));
  }
  // ---- what the root has besides
  fabric::FarAddr MovesAt() const { return root() + kMovesOffset; }
  fabric::FarAddr SweptAt() const { return root() + kSweptOffset; }
  fabric::FarAddr LogAt(uint64_t move) const {
    return root() + kLogOffset + move % kLogEntries * sizeof(LogEntry);
  }
  fabric::FarAddr SpareOwnerAt(size_t number) const { return root() + kSparesOffset + number * 8; }
  fabric::FarAddr SpareAt(size_t number) const { return root() + kLinesOffset + number * pool::kLine; }
  bool IsSpare(uint64_t offset) const {
    return offset >= SpareAt(0).offset && offset < SpareAt(kSpareLines).offset;
  }

  // INVARIANT nessie/9: only slots of a version that every operation in flight knows of are put to use.
  bool MaySplit(uint64_t slot) const { return slot < shape_.slots(directory().version); }

  // Whether a third or more of the last operations met an unsplit slot, as it is for a while after growth.
  bool ExpectsUnsplit() const { return unsplit_.Expects(); }
  void NoteUnsplit(bool unsplit) { unsplit_.Note(unsplit); }

  // ---- for the sweeper (sweeper.h)
  struct Sweep {
    uint64_t taken = 0;  // of the root's `swept`, as far as this client knows
    uint64_t next = 0;   // what is left of the range that this client has taken
    uint64_t end = 0;
    uint64_t owed = 0;  // slots, for the puts since the last time
  };
  Sweep& sweep() { return sweep_; }
  bool IsSwept() const {
    return sweep_.next == sweep_.end && shape_.slots(1) + sweep_.taken >= shape_.slots(directory().version);
  }

 private:
  uint64_t Capacity(uint32_t version) const override { return shape_.slots(version); }
  uint64_t SegmentBytes(size_t segment) const override { return shape_.SegmentBytes(segment); }
  void HasGrown() override { unsplit_.Fill(); }

  const Shape shape_;
  Sweep sweep_;
  Tendency<2, 1, 16> unsplit_;  // a READ too many costs a verb, a READ too few a trip
};

using Partitions = GrowingPartitions<Partition>;

}  // namespace farside::index::nessie
