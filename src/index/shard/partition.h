// The part of a table that lives on one node, as one client knows it: the directory, and how far the table
// has grown.
//
// A resize, from version v to v + 1, passes through three states (docs/engines/shard.md):
//
//   steady(v) -> preparing(v) -> announced(v) -> steady(v + 1)
//                 segment made    careful mode     buckets are split when a client wants to write to them
//
// A small table that many clients fill at once goes several versions by one resize.
//
//   shard/5  The state becomes steady(v + 1) only when every operation in flight knows that it was announced:
//            every sync reads the root's line (pool/4), so a grace period says so.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/kit/tendency.h"
#include "index/shard/layout.h"
#include "index/shard/options.h"
#include "pool/client.h"
#include "pool/members/sync_listener.h"

namespace farside::index::shard {

// What an operation has to know to find a bucket. A few hundred bytes: all that a client must keep of a
// table.
struct Directory {
  uint32_t version = 0;    // up to which buckets are split; 0: nothing is known yet
  bool announced = false;  // that they will be split further; so changes are made under locks
  uint32_t newest = 0;     // up to which they will be
  std::array<uint64_t, kMostSegments> bases{};  // where the first bucket of each segment is

  uint32_t Progress() const { return 2 * version + (announced ? 1 : 0); }
};

class Partition final : public pool::SyncListener, public std::enable_shared_from_this<Partition> {
 public:
  Partition(const Options& options, pool::PoolClient& pool, fabric::FarAddr root);

  fabric::NodeId node() const { return root_.node; }
  fabric::FarAddr root() const { return root_; }
  const Shape& shape() const { return options_.shape; }
  const Directory& directory() const { return directory_; }

  fabric::FarAddr BucketAt(uint64_t unit) const;
  fabric::FarAddr OverflowAt(uint64_t unit) const;
  fabric::FarAddr LockAt(uint64_t unit) const;

  // ---- for every operation, once it has its pin
  // Whether there is something to do before it: CatchUp.
  bool IsBehind() const { return stale_ || missed_ != made_up_for_ || may_activate_ || wants_resize_; }
  // Reads the directory if it has changed; moves a resize on, if it is this client's turn.
  Task<Done> CatchUp(fabric::Op& op);
  // Reads the root: something newer than the directory was seen.
  Task<Done> Refresh(fabric::Op& op);
  // A client that knows of an announcement syncs now and then, whatever it does: another client waits for it.
  void CountOperation() {
    if (directory_.announced && ++since_sync_ >= sync_every_) AskForSync();
  }
  // Records that were added, or taken away. What was added has to be reported before the table is full.
  void CountRecords(int64_t added) {
    unreported_ += added;
    if (added > 0 && !directory_.announced && ++since_sync_ >= sync_every_) AskForSync();
  }

  // Whether most units that a change meets are not split yet, as it is for a while after a resize.
  bool ExpectsUnsplit() const {
    return unsplit_.Expects() && !directory_.announced && directory_.version > 1;
  }
  void NoteUnsplit(bool unsplit) { unsplit_.Note(unsplit); }
  // Whether most units that are to be split have the overflow bit, so that level 2 is best read along.
  bool ExpectsOverflow() const { return overflow_.Expects(); }
  void NoteOverflow(bool overflow) { overflow_.Note(overflow); }

  // ---- pool::SyncListener
  pool::SyncRequest BeforeSync() override;
  void AfterSync(std::span<const std::byte, pool::kLine> line) override;
  void MissedSync() override { ++missed_; }

 private:
  void AskForSync();
  void Learn(const RootLine& line);
  double Load(uint64_t records) const;
  void SetSyncFrequency();
  void AskForGrace();
  Task<Done> ReadDirectory(fabric::Op& op);
  Task<Done> Activate(fabric::Op& op);
  // Announces the next version: the new segments are made and zeroed first.
  Task<Done> Resize(fabric::Op& op);
  // Versions to go by the next resize.
  uint32_t StepsToGo() const;
  // False: there is no room.
  Task<bool> MakeSegments(fabric::Op& op, uint32_t steps, std::vector<fabric::FarAddr>& made);
  Task<bool> TakePreparation(fabric::Op& op);
  Task<fabric::FarAddr> MakeSegment(fabric::Op& op, size_t segment);

  const Options options_;
  pool::PoolClient& pool_;
  const fabric::FarAddr root_;

  Directory directory_;
  // Of the units that changes meet. A lock that was taken in vain costs two verbs and an atomic or two; a
  // unit that turns out to be behind, four or five verbs and a trip or two.
  Tendency<3, 2, 64> unsplit_;
  Tendency<1, 1, 16> overflow_;  // of those that were not split
  StateWord seen_;               // the latest state that was read
  bool stale_ = true;            // seen_ is newer than the directory
  uint64_t missed_ = 0;          // syncs that should have read the root and did not
  uint64_t made_up_for_ = 0;     // of these: how many the root was read after
  bool resizing_ = false;        // an operation of this client resizes
  bool wants_resize_ = false;
  bool may_activate_ = false;     // the grace of the announcement is over
  uint32_t grace_asked_for_ = 0;  // a version that was announced
  uint64_t records_ = 0;          // as of the last sync
  int64_t unreported_ = 0;        // records added by this client that no sync has reported yet
  uint64_t since_sync_ = 0;
  uint64_t sync_every_ = 1;
  uint64_t no_room_below_ = 0;  // records: there was no memory for a resize; not asked for again below this
};

}  // namespace farside::index::shard
