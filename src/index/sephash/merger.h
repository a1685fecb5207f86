// Merging a full CurSegment into a new MainSegment, and splitting a segment whose MainSegment became too
// large.
//
//   sephash/7  A merge is committed by one CAS on the meta word: the epoch, the depth and the MainSegment
//              change together. What it is made from can change no more: the round is full, and MainSegments
//              never change. So any client can merge, a client that dies while it merges blocks no other
//              client, and of several clients the first one wins. A split commits both of its segments with
//              that CAS: the new MainSegment names the sibling.
//   sephash/9  What a merge has replaced is retired by the client that has committed it, and by no other.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "farside/task.h"
#include "index/sephash/context.h"
#include "index/sephash/look.h"
#include "index/sephash/main_room.h"
#include "index/sephash/main_segment.h"
#include "index/sephash/options.h"
#include "index/sephash/resolver.h"
#include "index/sephash/segment.h"
#include "index/sephash/segment_reader.h"
#include "pool/client.h"

namespace farside::index::sephash {

struct MergeCounts {
  uint64_t merges = 0;  // splits included
  uint64_t splits = 0;
  uint64_t lost = 0;  // another client was faster
  Nanos time{0};      // of operations in all of these, waiting included
};

class Merger {
 public:
  Merger(const Options& options, pool::PoolClient& pool, SegmentReader& reader)
      : options_(options), pool_(pool), reader_(reader) {}

  // The look shows that the segment is full. Ends well also if another client was faster. `birth`: the epoch
  // of the operation's pin. `frees`: the operation deletes, so it may take the spare memory of the table.
  Task<Done> Merge(Access at, Segment& segment, const Look& look, uint64_t birth, bool frees);

  const MergeCounts& counts() const { return counts_; }

  // Whether slots of the parent may name blocks of a segment, whose MainSegment says this.
  Task<bool> IsNamedByParent(Access at, const MainNames& main);
  // A parent whose slots keep a segment from retiring blocks, and there are many: it should be merged soon.
  struct OverdueParent {
    Directory* directory = nullptr;
    uint64_t segment = 0;  // offset
    uint64_t suffix = 0;
  };
  std::optional<OverdueParent> TakeOverdueParent() { return std::exchange(overdue_, std::nullopt); }
  bool has_overdue_parent() const { return overdue_.has_value(); }

 private:
  struct TakenSpare {
    size_t index = 0;  // in the root
    SpareWord word;    // as it was
  };
  // A merge on its way.
  struct Plan {
    Access at;
    Segment& segment;
    const Look& look;
    const uint64_t birth;
    const bool frees;
    // Once it is committed:
    std::vector<DroppedBlock> retired = {};
    std::vector<uint32_t> retired_pages = {};  // of the MainSegment that the look names
    std::optional<TakenSpare> spare = {};      // that the new MainSegment is made of

    uint32_t depth() const { return look.depth(); }
  };

  // The parent's slots may name blocks of the segment for a while yet.
  void KeepParent(const Plan& plan, const MainContent& old, MainContent& next);
  Task<Done> CommitMerge(Plan& plan, const MainContent& next);
  // This client has committed the merge.
  Task<Done> Retire(const Plan& plan);
  // This client has made it.
  void Remember(Segment& segment, const MainRoom& room, const MainContent& content);

  // ---- merger_split.cc
  // False: there is no memory for it, or the keys do not divide.
  Task<bool> TrySplit(Plan& plan, const MainContent& next);
  Task<Done> CommitSplit(Plan& plan, MainContent low, MainContent high);
  // The entries that stay and those that go to the sibling, with the tags of the new depth. None go if they
  // do not divide.
  Task<std::vector<Entry>> Divide(const Plan& plan, std::vector<Entry>& entries);

  // ---- merger_spare.cc
  // Room for a MainSegment of so many words.
  Task<Done> FetchRoom(Plan& plan, uint64_t words, MainRoom& room);
  Task<bool> TakeSpare(Plan& plan, MainRoom& room);
  Task<Done> SettleSpare(const Plan& plan, bool committed);
  Task<bool> KeepAsSpare(const Plan& plan);

  const Options& options_;
  pool::PoolClient& pool_;
  SegmentReader& reader_;
  MergeCounts counts_;
  std::optional<OverdueParent> overdue_;
};

}  // namespace farside::index::sephash
