// The chime table: keys in order. A B+ tree in far memory whose inner nodes clients remember and whose leaves are hopscotch
// tables, after "CHIME: A Cache-Efficient and High-Performance Hybrid Index on Disaggregated Memory" (SOSP 2024). A search
// READs one neighbourhood of a leaf. See docs/engines/chime.md.
//
// Invariants
//   chime/1  An entry is whole: it lies in one line and is written at once. What a search finds in a leaf was the key's value
//            when its line was sampled.
//   chime/2  A node is changed by the holder of its lock only. The lock is taken from an owner only when it is gone (pool/2),
//            and a leaf is brought to rest before anybody else changes it.
//   chime/3  A key stands at one place of its neighbourhood, in one leaf. While its leaf is locked it may stand at two, with
//            the same value: it is written where it goes before it is cleared where it was.
//   chime/4  `moves` of a leaf is odd while entries change their place or leave, and another number than before afterwards.
//            So a key that is not found between two READs of one even number was absent at some moment between them.
//   chime/5  A new leaf is complete before the old one names it, and nobody goes from the old to the new one before the old
//            one is at rest: has cleared what has left. So a copy that is left behind is never older than the key.
//   chime/6  Keys move to the right only, and never below a pivot. So whoever comes to a node that has the key, or had it once,
//            finds it by following siblings, as long as the key is not below the node's fence; from a dead leaf, by way of
//            its heir.
//   chime/7  A pivot of an inner node counts if it is below the node's fence. What is missing in a parent is inserted by
//            whoever had to go to a sibling although it had just read the parent.
//   chime/8  What a client remembers can be out of date, but not somebody else's. Inner nodes are freed with the table only; a
//            leaf is retired when nothing names it and `merges` was raised since. An operation under a newer epoch than any
//            before looks at `merges`, and if it has grown the client forgets what it remembers.
//   chime/9  A dead leaf has an heir, no entries, and is never changed again. As long as the leaf before it, or its parent,
//            names it, the lock of that node is held, by whoever merges or has died over it.
//   chime/10 An operation that has to wait for long gives up its pin, and begins anew from the root; and only if no catalog
//            has changed since it began (retry_policy.h).
//   chime/11 With keys=inline, no leaf has keys of both halves, below 2^63 and from there on, nor has the parent of a leaf: the
//            first two have a fence between them, and nodes only get smaller but by merges under one parent. So whoever looks
//            for a key is never at a leaf of the other half, and the leaf's fence tells everybody else which half it has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "index/chime/cache.h"
#include "index/chime/hotspots.h"
#include "index/chime/inner.h"
#include "index/chime/key.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/options.h"
#include "index/index.h"
#include "index/kit/block_buffer.h"
#include "index/kit/change.h"
#include "index/kit/changing_index.h"
#include "index/kit/draft.h"
#include "index/kit/key_queue.h"
#include "index/kit/retry_policy.h"
#include "pool/client.h"

namespace farside::index::chime {

class Table final : public ChangingIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, const std::vector<fabric::FarAddr>& roots);

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override;
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override;
  Task<bool> Scan(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) override;
  Task<bool> Last(fabric::Op& op, const KeyRange& range, Record& record) override;
  Task<TableStats> Stats(fabric::Op& op) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override;
  Task<Done> Verify(fabric::Op& op) override;

 private:
  friend class ChangingIndex<Table>;
  class DeferredWork;  // deferred_work.h
  // A node of the tree, and the one above that led to it (null if that is not known).
  struct PathNode {
    NodePtr node;
    NodePtr parent;
    bool by_sibling = false;  // the parent did not know of it
  };
  // What a change needs to know about its key.
  struct Target {
    Target(const Shape& shape, const Hotspots& hotspots, std::string_view text)
        : key(text), hash(Hash64(text)), clears(hotspots.clears()) {
      home = shape.HomeOf(TagOf(hash));
      spot_id = shape.inline_keys ? Hotspots::IdOf(hash, half()) : hash;
    }
    Half half() const { return HalfOf(key.prefix); }
    Key key;
    uint64_t hash;
    uint64_t clears;  // of the hotspots, when the operation began
    size_t home = 0;
    uint64_t spot_id = 0;  // by which the hotspots know it
  };
  // What an attempt under the lock came to.
  enum class Step : uint8_t {
    kCommitted,  // it is done, and the lock is released
    kEmptied,    // the same; and the leaf has no entries left, as far as could be seen
    kUnchanged,  // there was nothing to do; the lock is held
    kBeyond,     // the key is not below the leaf's fence; the lock is held
    kElsewhere,  // the key is not where it was found last; the lock is held
    kDead,       // the leaf has an heir; the lock is held
    kAgain,      // the leaf was split, or there was no memory at hand; the lock is released
  };

  // For somebody who may be dead: as long as a pin may be held, or, for those who look through everything, as long as it takes.
  enum class Waits : uint8_t { kBriefly, kLong };

  const Shape& shape() const { return options_.shape; }
  std::optional<Error> Refused(std::string_view key) const;

  // Of an operation that began when the pool's catalogs had changed so often (chime/10).
  RetryPolicy RetryPolicySince(uint64_t catalogs) const;

  // ---- search (search.cc)
  Task<bool> GetPinned(fabric::Op& op, std::string_view key, std::string& value);
  enum class Looked : uint8_t { kFound, kAbsent, kBeyond, kDead, kTorn };
  // The header too, if the options say so; otherwise it is left as it is.
  Task<Done> ReadNeighbourhood(fabric::Op& op, NodePtr leaf, Neighbourhood& hood, Header& header);
  // Whether a header, if it was read, says that the key has left the leaf.
  Task<bool> IsBeyond(fabric::Op& op, Key key, Header header);
  // One or two READs of the neighbourhood between two of the header: what is not found then is not there (chime/4).
  Task<Looked> LookAgain(fabric::Op& op, const Target& target, NodePtr leaf, Neighbourhood& hood,
                         Header& header, std::string& value);
  // READs the entry in which the key was found last. False: it is not there any more, and says nothing else.
  Task<bool> Speculate(fabric::Op& op, const Target& target, Spot spot, std::string& value);
  // True, and the value, if the key is in what was read of the leaf; then its place is remembered.
  Task<bool> FindValue(fabric::Op& op, const Target& target, NodePtr leaf, const Neighbourhood& hood,
                       std::string& value);
  // Whether a header, if it was read, says that the leaf has the other half of the keys: then memory is damaged.
  bool Contradicts(const Header& header, const Target& target) const;
  // Whether an entry of what was read may be the key's: with keys=bytes, its block has to tell.
  bool MayBe(const Target& target, const Neighbourhood& hood, const Entry& entry) const;
  Task<Done> ReadBlock(fabric::Op& op, BlockRef block, BlockBuffer& buffer);
  // Whether the key is below a node's fence; reads the fence if its first bytes do not decide.
  Task<bool> IsBelowFence(fabric::Op& op, Key key, Header header);

  // ---- the tree above the leaves (tree.cc)
  // The node of a level that the key belongs to, as far as this client remembers.
  std::optional<PathNode> Known(const Key& key, uint32_t level);
  // The same, reading what it does not remember. A null node: the tree has no such level yet.
  Task<PathNode> Find(fabric::Op& op, Key key, uint32_t level);
  // Where to go from a leaf whose fence the key is not below.
  Task<PathNode> GoRight(fabric::Op& op, Key key, PathNode at_node, Header header);
  Task<std::shared_ptr<const Inner>> LoadInner(fabric::Op& op, NodePtr at);
  Task<std::shared_ptr<const Inner>> KnowInner(fabric::Op& op, NodePtr at);
  Task<Done> ReadRoot(fabric::Op& op);
  // Whether what is remembered may be used under this pin; if not, it takes a Refresh (chime/8).
  bool IsFresh(const pool::PoolClient::Pin& pin) const { return !root_.null() && EpochsOf(pin) <= checked_; }
  Task<Done> Refresh(fabric::Op& op, const pool::PoolClient::Pin& pin);
  void Forget();
  // Of all nodes of the table, added up: they only grow.
  uint64_t EpochsOf(const pool::PoolClient::Pin& pin) const {
    uint64_t sum = 0;
    for (const fabric::NodeId node : nodes_) sum += pin.epoch(node);
    return sum;
  }
  // The pivots of an image that count, in ascending order, and its fence.
  Task<std::vector<Pivot>> Decode(fabric::Op& op, NodePtr at, const InnerImage& image, Bound& fence);
  Task<Bound> Resolve(fabric::Op& op, uint64_t prefix, BoundRef ref);
  std::optional<Bound> Resolved(uint64_t prefix, BoundRef ref) const;
  fabric::FarAddr At(NodePtr node) const { return node.at(nodes_); }

  // ---- growing it (grow.cc)
  // A pivot that may be missing in the level.
  Task<Done> InsertPivot(fabric::Op& op, uint32_t level, Bound bound, BoundRef ref, NodePtr child);
  // The same for whoever can go on without it: that there is no memory is no error.
  Task<Done> Repair(fabric::Op& op, uint32_t level, Bound bound, BoundRef ref, NodePtr child);
  enum class Inserted : uint8_t { kDone, kRight, kAgain };
  Task<Inserted> InsertPivotLocked(fabric::Op& op, NodePtr& at, InnerImage& image, const Bound& bound,
                                   BoundRef ref, NodePtr child, Header of_child, DeferredWork& deferred);
  Task<Inserted> SplitInner(fabric::Op& op, NodePtr at, InnerImage& image, std::vector<Pivot> pivots,
                            DeferredWork& deferred);
  Task<bool> GrowRoot(fabric::Op& op, const Bound& bound, BoundRef ref, NodePtr child);
  std::shared_ptr<const Inner> Remember(NodePtr at, const InnerImage& image, const Bound& fence,
                                        std::span<const Pivot> pivots);
  size_t NodeForNew(size_t old, std::string_view separator) const;

  // ---- changes (change.cc)
  Task<Changed> Modify(fabric::Op& op, Change change);
  Task<Changed> ModifyQueued(fabric::Op& op, const Change& change, const Target& target, uint64_t catalogs);
  Task<Changed> ModifyPinned(fabric::Op& op, const Change& change, const Target& target);
  // Takes the lock of a leaf, and reads its header and a neighbourhood; or all of it, into `whole`.
  Task<Done> LockAndRead(fabric::Op& op, ChangeKind kind, NodePtr leaf, Header& header, Neighbourhood& hood,
                         std::vector<std::byte>& whole);
  Task<Step> ModifyLocked(fabric::Op& op, const Change& change, const Target& target, NodePtr leaf,
                          const Header& header, const Neighbourhood& hood, Draft& draft,
                          DeferredWork& deferred, const pool::PoolClient::Pin& pin, Changed& changed);
  // `look`: all lines of the leaf are READ in the same trip, behind the unlock.
  Task<Step> Commit(fabric::Op& op, NodePtr leaf, size_t slot, Entry entry, Draft& draft, Leaf* look);
  // No slot of the neighbourhood is free: moves entries, or splits the leaf.
  Task<Step> MakeRoom(fabric::Op& op, const Target& target, NodePtr leaf, const Header& header,
                      const Neighbourhood& hood, Entry entry, Draft& draft, DeferredWork& deferred);
  Task<Step> MoveAndCommit(fabric::Op& op, NodePtr leaf, const Leaf& image, std::vector<size_t> path,
                           Entry entry, Draft& draft);

  // ---- splitting a leaf (split.cc)
  Task<Step> SplitLeaf(fabric::Op& op, const Target& target, NodePtr at, Leaf& leaf, DeferredWork& deferred);
  Task<Division> Divide(fabric::Op& op, const Target& target, const Leaf& leaf);
  Task<Done> WriteSplit(fabric::Op& op, NodePtr at, Leaf& leaf, NodePtr made, Leaf& right,
                        std::vector<fabric::WriteVerb> first);

  // ---- merging a leaf with the one before it (merge.cc)
  enum class Absorbed : uint8_t {
    kDecided,  // it is gone, or it stays
    kAgain,    // somebody was in the way
    kInDoubt,  // it may be half done, and no lock must be released before this client is fenced
  };
  // The leaf was seen to be empty. No lock is held.
  Task<Done> Absorb(fabric::Op& op, Key key, NodePtr leaf, const pool::PoolClient::Pin& pin);
  Task<Absorbed> AbsorbUnder(fabric::Op& op, Key key, NodePtr leaf, NodePtr parent, InnerImage& image,
                             const pool::PoolClient::Pin& pin);
  Task<bool> TryLockBoth(fabric::Op& op, NodePtr left, NodePtr leaf, Leaf& before, Leaf& empty);
  Task<Done> WriteMerge(fabric::Op& op, NodePtr left, NodePtr leaf, Header before, Header empty,
                        NodePtr parent, size_t slot);
  Task<Done> RaiseMerges(fabric::Op& op);
  void RetireLeaf(NodePtr leaf, BoundRef bound, uint64_t bound_bytes, const pool::PoolClient::Pin& pin);
  // Where to go from a dead leaf.
  Task<PathNode> GoToHeir(fabric::Op& op, PathNode at_node, Header header);
  Task<Done> FinishForTheDead(fabric::Op& op, NodePtr at);
  Task<Done> CompleteAbsorption(fabric::Op& op, NodePtr at, Header& header);
  Task<Done> ClearDeadChildren(fabric::Op& op, NodePtr at);
  Task<std::vector<Header>> ReadHeaders(fabric::Op& op, std::span<const Pivot> pivots);

  // ---- locks (lock.cc)
  // Takes the lock of a node and READs behind it in the same trip. Of a leaf that a dead owner left half done, only when
  // that is at rest. kContended if it takes too long for somebody who holds a pin (chime/10).
  Task<Done> Lock(fabric::Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads);
  // Once. 0: it is taken, and `reads` are done; otherwise who has it.
  Task<uint64_t> TryLock(fabric::Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads);
  static Task<Done> ReadAll(fabric::Op& op, std::span<const fabric::ReadIntoVerb> reads);
  void Unlock(fabric::Op& op, NodePtr at);
  Task<Done> TakeOver(fabric::Op& op, NodePtr at, uint64_t held);
  Task<Done> FinishLeaf(fabric::Op& op, NodePtr at);
  Task<Done> BringToRest(fabric::Op& op, NodePtr at, Leaf& leaf);
  // Waits until nobody who is dead holds the lock.
  Task<Done> AwaitUnlocked(fabric::Op& op, NodePtr at, Waits waits = Waits::kBriefly);
  uint64_t LockedBySelf(NodePtr at) const;

  // ---- in order (scan.cc)
  // An entry on its way to a page.
  struct Item {
    uint64_t prefix = 0;
    uint64_t value = 0;
  };
  // A leaf as it was at some moment, entry by entry (chime/4).
  Task<Done> ReadLeaf(fabric::Op& op, NodePtr at, Leaf& leaf, Waits waits = Waits::kBriefly);
  static std::optional<Error> DamageOf(NodePtr at, const Header& header);
  // The same for several at once; `ok[i]` says for which it worked.
  Task<Done> ReadLeaves(fabric::Op& op, std::span<const NodePtr> at, std::vector<Leaf>& leaves,
                        std::vector<bool>& ok);
  Task<Done> ReadLeavesOfNode(fabric::Op& op, std::span<const NodePtr> at, std::span<Leaf> leaves,
                              std::span<Header> again);
  Task<bool> ScanPinned(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page);
  Task<bool> LastPinned(fabric::Op& op, const KeyRange& range, Record& record);
  std::vector<NodePtr> LeavesAhead(const PathNode& at_node, size_t records);
  Task<NodePtr> ParentOfNext(fabric::Op& op, NodePtr parent, NodePtr next);
  void Collect(const Leaf& leaf, const KeyRange& range, std::vector<Item>& items) const;
  Task<std::vector<Record>> ReadItems(fabric::Op& op, std::span<const Item> items);
  // Appends those of the items that are in the range, up to the limit. True if there were more.
  Task<bool> AppendItems(fabric::Op& op, const KeyRange& range, std::vector<Item> items, size_t limit,
                         std::vector<Record>& page);
  bool AppendInline(const KeyRange& range, std::span<const Item> items, size_t limit,
                    std::vector<Record>& page) const;
  Task<PathNode> FindBelow(fabric::Op& op, const Bound& upper, Bound& low);

  // ---- looking through everything (walk.cc)
  Task<bool> NextPinned(fabric::Op& op, Cursor& cursor, std::vector<Record>& page);
  Task<TableStats> StatsPinned(fabric::Op& op);
  // Where a cursor goes on.
  Task<NodePtr> LeafOf(fabric::Op& op, const Cursor& cursor);
  // What parents name although it is dead, but for what is marked already.
  Task<Done> MarkDeadChildren(fabric::Op& op, pool::Reach& reach, const std::set<uint64_t>& marked);
  Task<NodePtr> Leftmost(fabric::Op& op, uint32_t level);
  Task<uint64_t> BytesOf(fabric::Op& op, BlockRef block);
  bool IsAcross(const Bound& low, const Bound& fence) const;
  Task<Done> VerifyLeaf(fabric::Op& op, NodePtr at, const Leaf& leaf, const Bound& low, const Bound& fence);

  const Options options_;
  pool::PoolClient& pool_;
  fabric::FarAddr root_block_;
  std::vector<fabric::NodeId> nodes_;
  NodePtr root_;          // as last read
  uint64_t merges_ = 0;   // likewise
  uint64_t checked_ = 0;  // EpochsOf the last pin for which the root block was looked at
  uint64_t memory_ = 0;   // how often what was remembered was forgotten
  NodeCache cache_;
  Hotspots hotspots_;
  uint64_t searches_ = 0;
  uint64_t speculations_ = 0;  // of searches,
  uint64_t hits_ = 0;          // and those that were right
  // Separators that are longer than 8 bytes, by what names them; forgotten with the nodes (chime/8).
  std::unordered_map<uint64_t, std::string> long_bounds_;
  uint64_t long_bound_bytes_ = 0;
  // Of changes that are in flight: by the hash of their key, and by the leaf that they lock.
  KeyQueue key_queue_;
  KeyQueue leaf_queue_;
  KeyQueue pivot_inserts_;  // of the nodes that were split
};

class ChimeEngine final : public Engine {
 public:
  explicit ChimeEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "chime"; }
  bool ordered() const override { return true; }
  std::optional<size_t> fixed_size() const override {
    return options_.shape.inline_keys ? std::optional<size_t>(sizeof(uint64_t)) : std::nullopt;
  }
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override;
  OptionMap recorded_options() const override { return options_.Recorded(); }
  std::vector<OptionMap> stress_options() const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeChimeEngine(const OptionMap& options);

}  // namespace farside::index::chime

extern template class farside::index::ChangingIndex<farside::index::chime::Table>;
