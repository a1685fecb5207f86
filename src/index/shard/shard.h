// The shard table: an iceberg hash table in far memory, after "SHARD: A Scalable and Resize-optimized Hash Index on
// Disaggregated Memory" (PVLDB 19(4), 2025). Searches take one trip for the index, changes two; it doubles without stopping
// anybody. See docs/engines/shard.md.
//
// Invariants
//   shard/1  A key stands at most once in the table. Kept by: in a bucket of level 1, unused slots are filled in order, and
//            used ones never become unused while the bucket has its version; so a CAS that fills the first unused slot
//            proves that nobody has inserted anything in this bucket since it was read. Every other insert (into a
//            hole, into level 2 or 3) is made under the lock of the key's unit, when the bucket has no unused slot.
//   shard/2  Whoever changes an entry keeps its flag.
//   shard/3  A bucket counts only if all its lines show one version, which is not 0.
//   shard/4  A key stands in level 2 or 3 only if the bucket that is its place in level 1 has the overflow bit.
//   shard/5  Buckets are split to a version only when every operation in flight knows that it was announced.
//   shard/6  Whoever knows of an announcement changes a unit only under its lock. So nobody changes a unit that somebody
//            splits.
//   shard/7  A split writes the new unit first, whole, then the old one without what moved. A new unit that has a version
//            decides what is in it.
//   shard/8  A lock names the unit that its owner may be splitting. Whoever takes it over from a dead one finishes that
//            first: lines that have the new version stay as they are, the others follow from the old unit.
//   shard/9  (location_cache.h)
//   shard/10 An operation that has to wait gives up its pin, and takes a new one only if no catalog has changed since it
//            began, as far as it knows (index/kit/retry_policy.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/index.h"
#include "index/kit/block_buffer.h"
#include "index/kit/change.h"
#include "index/kit/changing_index.h"
#include "index/kit/draft.h"
#include "index/kit/key_queue.h"
#include "index/kit/retry_policy.h"
#include "index/shard/bucket.h"
#include "index/shard/layout.h"
#include "index/shard/location_cache.h"
#include "index/shard/options.h"
#include "index/shard/partition.h"
#include "pool/client.h"

namespace farside::index::shard {

class Table final : public ChangingIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, const std::vector<fabric::FarAddr>& roots);
  ~Table() override;

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override;
  bool searches_together() const override { return true; }
  Task<Done> SearchTogether(fabric::Op& op, std::span<Search> searches) override;
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override;
  Task<TableStats> Stats(fabric::Op& op) override;
  uint64_t growth() const override;
  void Anticipate(std::string_view key) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override;
  Task<Done> Verify(fabric::Op& op) override;

 private:
  friend class ChangingIndex<Table>;
  // Everywhere a key may stand, as read for a change.
  struct View {
    Bucket bucket;
    Overflow first;
    Overflow second;
    bool has_second = false;  // the two choices are different lines
    bool unjudged = false;    // the choices were read together with the bucket, and may not decide
    // Of the units that the choices will move to, if a resize is announced and they were read: version 0 until then.
    Line first_new;
    Line second_new;
    std::optional<uint64_t> busy;  // a unit whose lock somebody else holds
  };
  struct Found {
    Slot slot;
    std::string_view value;  // inside of the buffer with the block
  };
  // What an attempt came to.
  enum class Attempt : uint8_t { kDone, kRetry };

  Partition& PartitionOf(const KeyHash& hash) { return PartitionOf(hash.hash()); }
  Partition& PartitionOf(uint64_t hash);
  const Shape& shape() const { return options_.shape; }
  // Of an operation that began when the pool's catalogs had changed so often, or has waited since `began` (shard/10).
  RetryPolicy RetryPolicySince(uint64_t catalogs, const Partition& part,
                               std::optional<Nanos> began = std::nullopt) const;

  // ---- search (search.cc)
  // Wherever its bucket has come to, in one or several attempts.
  Task<bool> SearchWithRetries(fabric::Op& op, Partition& part, const KeyHash& hash, std::string_view key,
                               std::string& value, uint64_t catalogs);
  Task<bool> SearchPinned(fabric::Op& op, Partition& part, const KeyHash& hash, std::string_view key,
                          std::string& value);
  Task<bool> SearchOverflow(fabric::Op& op, Partition& part, const KeyHash& hash, std::string_view key,
                            std::string& value, uint64_t epoch);
  // Where the key was, if that may be relied on by a search that holds this epoch, and whose READs are in order or not.
  std::optional<Location> KnownLocation(const Partition& part, uint64_t hash, uint64_t epoch,
                                        bool in_order) const;
  // False: the key is not there any more, and may be elsewhere.
  Task<bool> SearchLocation(fabric::Op& op, const Partition& part, Location known, uint64_t epoch,
                            std::string_view key, std::string& value);
  static bool IsStillThere(const Location& location, const Line& line);
  void Remember(const Partition& part, uint64_t hash, const Slot& slot, uint64_t epoch);
  Task<std::optional<Found>> FindKey(fabric::Op& op, Partition& part, const KeyHash& hash, const View& view,
                                     std::string_view key, BlockBuffer& buffer);
  Task<std::optional<Found>> FindInBucket(fabric::Op& op, Partition& part, const KeyHash& hash,
                                          const Bucket& bucket, std::string_view key, BlockBuffer& buffer);
  Task<std::optional<Found>> FindInOverflows(fabric::Op& op, Partition& part, const KeyHash& hash,
                                             const View& view, std::string_view key, BlockBuffer& buffer);
  static Result<std::optional<std::string_view>> ValueIfKey(const BlockBuffer& buffer, std::string_view key);

  // ---- several searches at once (search_together.cc)
  struct SearchBatch;
  class BorrowedSearchBatch;
  void FillBatch(SearchBatch& batch, std::span<const Search> searches);
  void AskForBuckets(fabric::Op& op, SearchBatch& batch, const pool::PoolClient::Pin& pin);
  void TakeBuckets(SearchBatch& batch, std::span<Search> searches, const pool::PoolClient::Pin& pin);
  void TakeBlocks(SearchBatch& batch, std::span<Search> searches, const pool::PoolClient::Pin& pin);

  // ---- reading buckets (locate.cc)
  // READs the bucket of level 1 that decides about a number, wherever its splits have come to.
  Task<Done> ReadBucket(fabric::Op& op, Partition& part, uint64_t number, Bucket& bucket);
  // The same for a line of level 2, with its nodes.
  Task<Done> ReadOverflow(fabric::Op& op, Partition& part, uint64_t number, Overflow& overflow);
  Task<Done> ReadNodes(fabric::Op& op, Partition& part, Overflow& overflow);
  // How a READ of a unit is to be taken, by somebody who looks for a number.
  enum class UnitStatus : uint8_t {
    kDecides,    // what is there is what there is
    kAbove,      // not split yet: the unit it will be split from decides
    kTorn,       // somebody came between its lines
    kNewer,      // than the directory
    kSplitPast,  // split already, and the number went elsewhere
  };
  UnitStatus Classify(const Partition& part, uint64_t number, uint64_t unit,
                      std::span<const Line> lines) const;
  // In careful mode: the first line of the unit that the number will move to; nothing if it stays.
  std::optional<uint64_t> NewUnitOf(const Partition& part, uint64_t number) const;
  Task<Done> ReadUnit(fabric::Op& op, Partition& part, Candidate candidate, uint64_t number,
                      std::span<Line> lines, uint64_t& unit);
  uint64_t UnitAbove(uint64_t number, uint32_t version) const;
  Task<uint32_t> NearestAbove(fabric::Op& op, Partition& part, Candidate candidate, uint64_t number,
                              uint32_t level);
  // For a change: all levels in one trip. Of the bucket, this is all; whoever needs the others goes on with KnowOverflows.
  Task<Done> ReadView(fabric::Op& op, Partition& part, const KeyHash& hash, View& view);
  Task<Done> KnowOverflows(fabric::Op& op, Partition& part, const KeyHash& hash, View& view);
  Task<Done> ReadOverflows(fabric::Op& op, Partition& part, const KeyHash& hash, View& view);
  Task<Done> JudgeOverflows(fabric::Op& op, Partition& part, const KeyHash& hash, View& view);
  Task<Done> EndOverflows(fabric::Op& op, Partition& part, const KeyHash& hash, View& view);
  // For an insert that expects to split, from `version` on: the choices before and after their own splits.
  struct Choices {
    std::array<Line, 2> above;  // of the units that those of level 2 come from
  };
  void AddReadsOfChoices(const Partition& part, const KeyHash& hash, uint32_t version, View& view,
                         Choices& choices, std::vector<fabric::ReadIntoVerb>& reads) const;
  void TakeChoices(const KeyHash& hash, uint32_t version, const Choices& choices, View& view) const;
  Task<Done> ReadChoices(fabric::Op& op, Partition& part, const KeyHash& hash, uint32_t version, View& view);
  static Error HalfSplitForEver(const Partition& part, uint64_t unit);
  // Waits for, or finishes, whatever keeps a unit torn.
  Task<Done> Help(fabric::Op& op, Partition& part, uint64_t unit, bool is_new);

  // ---- changes (change.cc)
  Task<Changed> Modify(fabric::Op& op, Change change);
  Task<Attempt> ModifyWithRetries(fabric::Op& op, const Change& change, Partition& part, const KeyHash& hash,
                                  Draft& draft, Changed& changed, uint64_t catalogs,
                                  std::optional<Nanos> began, Error error);
  // Some attempts under one pin; kContended if there should be more under another.
  Task<Attempt> ModifyPinned(fabric::Op& op, const Change& change, Partition& part, const KeyHash& hash,
                             Draft& draft, Changed& changed);
  Task<Attempt> TryModify(fabric::Op& op, const Change& change, Partition& part, const KeyHash& hash,
                          Draft& draft, Changed& changed);
  // The same in careful mode: what is in level 1, or belongs there, is changed under a lock that is taken by the trip
  // that reads it. Nothing: it is not so simple.
  Task<std::optional<Attempt>> TryModifyLocked(fabric::Op& op, const Change& change, Partition& part,
                                               const KeyHash& hash, Draft& draft, Changed& changed);
  Task<std::optional<Attempt>> ModifyUnderLock(fabric::Op& op, const Change& change, Partition& part,
                                               const KeyHash& hash, View& view, Draft& draft,
                                               Changed& changed);
  // What the change makes of the value that was found; and the draft of its block, if there is one. It may lack room.
  Result<Decision> DecideAndDraft(const Change& change, const Partition& part, const KeyHash& hash,
                                  std::optional<std::string_view> value, Draft& draft, Changed& changed);
  // Replaces an entry by the draft's block, or by nothing. `buffer` has the block that it names.
  Task<Attempt> Replace(fabric::Op& op, Partition& part, const KeyHash& hash, const Slot& slot, bool removes,
                        Draft& draft, const BlockBuffer& buffer, bool locked);
  Task<Attempt> InsertAbsent(fabric::Op& op, Partition& part, const KeyHash& hash, const View& view,
                             std::string_view key, Draft& draft);
  enum class Locking : uint8_t {
    kIfCareful,  // as the directory demands
    kHeld,       // the lock of the unit is held
    kTake,       // the lock is taken
  };
  static Entry EntryFor(const Draft& draft, uint64_t tag) {
    return Entry::Of(draft.at().offset, draft.bytes(), tag);
  }
  // CAS of an entry. True if it took effect.
  Task<bool> WriteSlot(fabric::Op& op, Partition& part, const Slot& slot, Entry desired, Draft* draft,
                       Locking locking);
  Task<bool> WriteSlotLocked(fabric::Op& op, Partition& part, const Slot& slot, Entry desired, Draft* draft);
  Task<bool> CasSlot(fabric::Op& op, const Slot& slot, Entry desired, Draft* draft);

  // ---- inserts that are not appends (overflow.cc)
  Task<Attempt> InsertLocked(fabric::Op& op, Partition& part, const KeyHash& hash, std::string_view key,
                             Draft& draft);
  Task<Attempt> InsertUnderLock(fabric::Op& op, Partition& part, const KeyHash& hash, View& view,
                                std::string_view key, Draft& draft);
  Task<Attempt> PlaceUnderLock(fabric::Op& op, Partition& part, const KeyHash& hash, View& view,
                               Draft& draft);
  Task<Done> LockView(fabric::Op& op, Partition& part, const KeyHash& hash, View& view);
  void UnlockView(fabric::Op& op, Partition& part, const View& view);
  bool IsUpToDate(const Partition& part, const KeyHash& hash, const View& view, bool with_overflow) const;
  Task<Done> BringOverflowsUpToDate(fabric::Op& op, Partition& part, const KeyHash& hash, const View& view);
  // Into level 2 or 3; the lock of the key's unit is held. `busy` is set if that of the line is not to be had.
  Task<Attempt> InsertIntoOverflow(fabric::Op& op, Partition& part, const KeyHash& hash,
                                   const Overflow& overflow, Candidate candidate, uint64_t locked,
                                   Draft& draft, std::optional<uint64_t>& busy);
  // Whoever holds a second lock that was not to be had may be dead. No lock may be held.
  Task<Done> HelpBusy(fabric::Op& op, Partition& part, const View& view);
  Task<Attempt> FillOverflow(fabric::Op& op, Partition& part, const KeyHash& hash, const Overflow& overflow,
                             Candidate candidate, Draft& draft);
  Task<Done> SetOverflow(fabric::Op& op, Partition& part, const Bucket& bucket);
  Task<Attempt> AppendNode(fabric::Op& op, Partition& part, const Overflow& overflow, Entry entry,
                           Draft& draft);

  // ---- splitting (split.cc)
  struct Split;
  // Splits what decides about the number, step by step, until it has the version of the directory.
  Task<Done> SplitFor(fabric::Op& op, Partition& part, Candidate candidate, uint64_t number);
  // The same from a bucket that was found to be behind, with a key that is not in the table as the last entry of it.
  // False: somebody else was faster, or there was no room; nothing was inserted.
  Task<bool> SplitWith(fabric::Op& op, Partition& part, const KeyHash& hash, const Bucket& bucket,
                       Draft& draft);
  // From `version` to the next one. True if the draft was published with it.
  Task<bool> SplitStep(fabric::Op& op, Partition& part, uint64_t unit, uint32_t version, const KeyHash* hash,
                       Draft* draft);
  Task<bool> SplitUnderLock(fabric::Op& op, Partition& part, Split& split, const KeyHash* hash, Draft* draft,
                            bool absent);
  // `met` is the key's bucket, if that was read and is split already.
  Task<std::optional<Attempt>> TryModifyWithSplit(fabric::Op& op, const Change& change, Partition& part,
                                                  const KeyHash& hash, Draft& draft, Changed& changed,
                                                  Bucket& met);
  Task<std::optional<Attempt>> ModifyWithSplit(fabric::Op& op, const Change& change, Partition& part,
                                               const KeyHash& hash, View& view, Split& split, Draft& draft,
                                               Changed& changed);
  // The lock is held, taken over from somebody who may have been splitting the unit.
  Task<Done> FinishSplit(fabric::Op& op, Partition& part, uint64_t unit);
  Task<Done> DivideBucket(fabric::Op& op, Partition& part, Split& split, const Entry* added,
                          bool added_moves);
  Task<Done> DivideOverflow(fabric::Op& op, Partition& part, Split& split);
  Task<Done> ProveOverflow(fabric::Op& op, Partition& part, Split& split);
  Task<std::vector<Overflow>> ReadLevel2(fabric::Op& op, Partition& part, uint32_t newest);
  Task<std::vector<KeyHash>> ReadHashes(fabric::Op& op, Partition& part, std::span<const Entry> entries);
  Task<Done> RefreshTags(fabric::Op& op, Partition& part, const Split& split, std::vector<Entry>& entries,
                         bool level1);
  Task<Line> LayOut(fabric::Op& op, Partition& part, Split& split, std::span<const Entry> entries);
  Task<Done> WriteSplit(fabric::Op& op, Partition& part, Split& split, Draft* draft, bool unlock);
  void FreeUnwritten(Partition& part, Split& split);

  // ---- locks (lock.cc)
  // Takes the lock of a unit and READs behind it in the same trip. kContended if it is held by somebody for longer than
  // is worth waiting for with a pin.
  Task<Done> Lock(fabric::Op& op, Partition& part, uint64_t unit, std::vector<fabric::ReadIntoVerb> reads);
  // One attempt.
  Task<bool> TryLock(fabric::Op& op, Partition& part, uint64_t unit);
  void Unlock(fabric::Op& op, Partition& part, uint64_t unit);
  uint64_t LockedBySelf(const Partition& part, uint64_t unit) const;

  // ---- looking through everything (walk.cc)
  // A unit as it is: what was not split yet has version 0, and no entries.
  struct RawUnit {
    Bucket bucket;
    Overflow overflow;
  };
  Task<Done> ReadRaw(fabric::Op& op, Partition& part, uint64_t unit, RawUnit& raw);
  Task<bool> IsHalfSplit(fabric::Op& op, Partition& part, uint64_t unit, uint32_t version,
                         const RawUnit& raw);
  std::vector<Slot> SlotsOf(const Partition& part, const RawUnit& raw, bool level1) const;
  Task<Done> WalkUnit(fabric::Op& op, Partition& part, uint64_t unit, pool::Reach& reach);
  Task<Done> VerifyUnit(fabric::Op& op, Partition& part, uint64_t unit);
  Task<Done> VerifySlot(fabric::Op& op, Partition& part, Slot slot);
  Task<Done> AddStats(fabric::Op& op, Partition& part, TableStats& stats, std::array<uint64_t, 3>& levels);

  const Options options_;
  pool::PoolClient& pool_;
  std::vector<std::shared_ptr<Partition>> partitions_;
  std::vector<fabric::NodeId> nodes_;
  LocationCache locations_;
  KeyQueue key_queue_;
  std::vector<std::unique_ptr<SearchBatch>> idle_batches_;  // that nobody uses now
};

class ShardEngine final : public Engine {
 public:
  explicit ShardEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "shard"; }
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override;
  OptionMap recorded_options() const override { return options_.Recorded(); }
  std::vector<OptionMap> stress_options() const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  Task<fabric::FarAddr> MakeFirstSegment(fabric::Op& op, pool::Allocator& allocator);
  Task<fabric::FarAddr> MakeRoot(fabric::Op& op, pool::Allocator& allocator, fabric::FarAddr segment);

  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeShardEngine(const OptionMap& options);

}  // namespace farside::index::shard

extern template class farside::index::ChangingIndex<farside::index::shard::Table>;
