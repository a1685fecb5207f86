// The part of a table that lives on one node, as one client knows it: how far it has grown
// (index/kit/growing_partition.h), where its units are, and what changes have met in them.
//
// Buckets are split up to the version of the directory, when a client wants to write to them
// (docs/engines/shard.md). growth/1 of the kit is shard/5 here.
#pragma once

#include <cstdint>

#include "fabric/address.h"
#include "index/kit/growing_partition.h"
#include "index/kit/tendency.h"
#include "index/shard/layout.h"
#include "index/shard/options.h"
#include "pool/client.h"

namespace farside::index::shard {

class Partition final : public GrowingPartition {
 public:
  Partition(const Options& options, pool::PoolClient& pool, fabric::FarAddr root);

  const Shape& shape() const { return shape_; }

  fabric::FarAddr BucketAt(uint64_t unit) const;
  fabric::FarAddr OverflowAt(uint64_t unit) const;
  fabric::FarAddr LockAt(uint64_t unit) const;

  // Whether most units that a change meets are not split yet, as it is for a while after a resize.
  bool ExpectsUnsplit() const {
    return unsplit_.Expects() && !directory().announced && directory().version > 1;
  }
  void NoteUnsplit(bool unsplit) { unsplit_.Note(unsplit); }
  // Whether most units that are to be split have the overflow bit, so that level 2 is best read along.
  bool ExpectsOverflow() const { return overflow_.Expects(); }
  void NoteOverflow(bool overflow) { overflow_.Note(overflow); }

 private:
  uint64_t Capacity(uint32_t version) const override { return shape_.capacity(version); }
  uint64_t SegmentBytes(size_t segment) const override { return shape_.SegmentBytes(segment); }
  void HasGrown() override { unsplit_.Fill(); }

  const Shape shape_;
  // Of the units that changes meet. A lock that was taken in vain costs two verbs and an atomic or two; a
  // unit that turns out to be behind, four or five verbs and a trip or two.
  Tendency<3, 2, 64> unsplit_;
  Tendency<1, 1, 16> overflow_;  // of those that were not split
};

}  // namespace farside::index::shard
