// The part of a growing table that lives on one node, as one client knows it: the directory, and how far the
// table has grown. No client stops while it grows, and nothing that a client has read moves under it.
//
// A resize, from version v to v + 1, passes through three states:
//
//   steady(v) -> preparing(v) -> announced(v) -> steady(v + 1)
//                 segment made    careful mode     the engine moves what it has, when it comes to it
//
// A small table that many clients fill at once goes several versions by one resize.
//
// INVARIANT growth/1: the state becomes steady(v + 1) only when every operation in flight knows that it was
// announced. Every sync reads the root's line (pool/4), so a grace period says so. The engine
// decides what a client does differently once it knows of an announcement.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/kit/growth_layout.h"
#include "pool/client.h"
#include "pool/members/sync_listener.h"

namespace farside::index {

// What an operation has to know to find a place. A few hundred bytes: all that a client must keep of a table.
struct Directory {
  uint32_t version = 0;                         // up to which the table has grown; 0: nothing is known yet
  bool announced = false;                       // that it will grow further
  uint32_t newest = 0;                          // up to which it will
  std::array<uint64_t, kMostSegments> bases{};  // where each segment begins

  uint32_t Progress() const { return 2 * version + (announced ? 1 : 0); }
};

// When a table grows, and how often its clients sync for that.
struct GrowthOptions {
  std::string_view engine;               // its name, for messages; outlives the partition
  uint32_t most_version = kMostVersion;  // beyond which the table does not grow
  uint32_t most_steps = kMostVersion;    // versions that one resize goes at most
  bool grows = true;                     // no: this client leaves growth to others
  double max_load = 0;                   // of its capacity, at which the table should have grown
  double head_start = 0;  // of max_load, by which a resize is announced early: its grace takes time
  // How rarely clients sync: every alpha * capacity * (max_load - load) / clients operations.
  double alpha = 0;
  uint64_t burst = 0;  // records that a client may insert while a resize is under way
};

// An engine derives its own, and adds where things stand in the segments.
class GrowingPartition : public pool::SyncListener, public std::enable_shared_from_this<GrowingPartition> {
 public:
  fabric::NodeId node() const { return root_.node; }
  fabric::FarAddr root() const { return root_; }
  const Directory& directory() const { return directory_; }
  // In the table, as far as this client knows. What it has deleted itself counts until a sync reports it.
  uint64_t records() const {
    const int64_t known = static_cast<int64_t>(records_) + std::max<int64_t>(unreported_, 0);
    return static_cast<uint64_t>(std::max<int64_t>(known, 0));
  }

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

  // ---- for an operation that has found no place for its key
  // The table is to grow, whatever its load is: the next CatchUp of this client begins a resize, unless one
  // is under way. False: it cannot grow, or this client may not change it.
  bool RequestGrowth();
  // Resizes of this client that found no memory. An operation that has seen the number rise since it began
  // waits for growth in vain.
  uint64_t failed_growths() const { return failed_growths_; }

  // ---- pool::SyncListener
  pool::SyncRequest BeforeSync(bool may_add) override;
  void AfterSync(std::span<const std::byte, pool::kLine> line) override;
  void MissedSync() override { ++missed_; }

 protected:
  GrowingPartition(const GrowthOptions& options, pool::PoolClient& pool, fabric::FarAddr root)
      : options_(options), pool_(pool), root_(root) {}

 private:
  // ---- what the engine says; asked for at syncs and resizes only
  // Records that the table has room for on this node.
  virtual uint64_t Capacity(uint32_t version) const = 0;
  // All of them zero, when the segment is announced.
  virtual uint64_t SegmentBytes(size_t segment) const = 0;
  // The directory has a newer version than the one that this client knew before.
  virtual void HasGrown() {}

  void AskForSync();
  void Learn(const RootLine& line);
  // kCorrupt if no correct client can have left this state where this client had seen `progress` before.
  Status CheckState(StateWord found, uint32_t progress) const;
  bool IsFull() const;
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

  const GrowthOptions options_;
  pool::PoolClient& pool_;
  const fabric::FarAddr root_;

  Directory directory_;
  StateWord seen_;            // the latest state that was read
  bool stale_ = true;         // seen_ is newer than the directory
  uint64_t missed_ = 0;       // syncs that should have read the root and did not
  uint64_t made_up_for_ = 0;  // of these: how many the root was read after
  bool resizing_ = false;     // an operation of this client resizes
  bool wants_resize_ = false;
  bool growth_requested_ = false;  // an operation has found no place since the table last grew
  bool may_activate_ = false;      // the grace of the announcement is over
  uint32_t grace_asked_for_ = 0;   // a version that was announced
  uint64_t records_ = 0;           // as of the last sync
  int64_t unreported_ = 0;         // records added by this client that no sync has reported yet
  uint64_t since_sync_ = 0;
  uint64_t sync_every_ = 1;
  uint64_t no_room_below_ = 0;  // records: there was no memory for a resize; not asked for again below this
  uint64_t failed_growths_ = 0;
};

}  // namespace farside::index
