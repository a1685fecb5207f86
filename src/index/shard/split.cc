// Splitting a unit in two, when somebody wants to write to it and the table has grown: [CAS lock, READ], then [WRITE the new
// unit, WRITE the old one, CAS unlock]. The insert that caused it goes along.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "index/shard/arrange.h"
#include "index/shard/mutants.h"
#include "index/shard/shard.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::Batch;
using fabric::Cas;
using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::ReadIntoVerb;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

namespace {

constexpr int kMostSteps = 1000;
constexpr size_t kNodesPerTrip = 32;
constexpr size_t kHeadersPerTrip = 16;
// Tables with at most so many units, and so many keys in levels 2 and 3, are looked through for an overflow bit.
constexpr uint64_t kProvableUnits = 256;
constexpr size_t kProvableEntries = 512;

std::span<std::byte> BytesOf(std::span<Line> lines) { return std::as_writable_bytes(lines); }

// A unit as it lies in far memory: the lines of its bucket, then its line of level 2.
using UnitLines = std::array<Line, kMostLines + 1>;

// The entries of a line of level 2; if there are nodes behind it, as many more as one of them has room for.
size_t ApproximateEntries(const Overflow& overflow, const Shape& shape) {
  const auto slots = std::span(overflow.line.entries).first(overflow.slots(shape));
  const auto used = std::ranges::count_if(slots, [](const Entry& entry) { return entry.has_block(); });
  return static_cast<size_t>(used) + (overflow.line.has_link() ? kNodeEntries : 0);
}

// Entries one behind the other, then unused slots.
void Fill(std::span<Line> lines, std::span<const Entry> entries, uint32_t version, bool overflow) {
  for (size_t slot = 0; slot < lines.size() * kSlotsPerLine; ++slot) {
    const Entry entry = slot < entries.size() ? entries[slot].WithFlag(false) : Entry();
    lines[slot / kSlotsPerLine].entries[slot % kSlotsPerLine] = entry;
  }
  for (Line& line : lines) line.set_version(version);
  Entry& bit = lines[0].entries[kOverflowSlot];
  bit = bit.WithFlag(overflow);
}

}  // namespace

// A split in memory. What is already written, because somebody died in the middle of it, is left alone (shard/8).
struct Table::Split {
  uint64_t unit = 0;
  uint64_t new_unit = 0;
  uint32_t version = 0;  // before

  Bucket old_bucket;
  Bucket new_bucket;
  Overflow old_overflow;
  Line new_line;
  std::vector<Node> made_nodes;             // of level 3, for both
  std::array<bool, kMostLines> keep_old{};  // lines that have the next version
  std::array<bool, kMostLines> keep_new{};
  size_t front = 0;  // lines of the old bucket that are written before the others
  bool keep_old_line = false;
  bool keep_new_line = false;
  bool old_overflow_bit = true;  // false: it was proved that no key of the unit is in level 2 or 3
  bool new_overflow_bit = true;
  bool publishes = false;  // the draft goes along
  bool writing = false;    // something was posted that others may see

  void TakeOld(const UnitLines& read, size_t lines) {
    std::copy_n(read.begin(), lines, old_bucket.lines.begin());
    old_overflow.line = read[lines];
  }
};

Task<Done> Table::SplitFor(Op& op, Partition& part, Candidate candidate, uint64_t number) {
  for (int step = 0; step < kMostSteps; ++step) {
    uint64_t unit = 0;
    uint32_t version = 0;
    if (candidate == Candidate::kLevel1) {
      Bucket bucket;
      co_await ReadBucket(op, part, number, bucket);
      unit = bucket.unit;
      version = bucket.version;
    } else {
      Overflow overflow;
      co_await ReadOverflow(op, part, number, overflow);
      unit = overflow.unit;
      version = overflow.version;
    }
    if (version >= part.directory().version) co_return Done{};
    co_await SplitStep(op, part, unit, version, nullptr, nullptr);
  }
  co_return Error(ErrorCode::kContended, "others keep splitting what is to be split; retry later");
}

Task<bool> Table::SplitWith(Op& op, Partition& part, const KeyHash& hash, const Bucket& bucket,
                            Draft& draft) {
  const uint64_t number = hash.number(Candidate::kLevel1);
  if (bucket.version + 1 == part.directory().version) {
    const bool inserted = co_await SplitStep(op, part, bucket.unit, bucket.version, &hash, &draft);
    co_return inserted;
  }
  // Far behind: step by step, and the insert afterwards.
  co_await SplitFor(op, part, Candidate::kLevel1, number);
  co_return false;
}

Task<bool> Table::SplitStep(Op& op, Partition& part, uint64_t unit, uint32_t version, const KeyHash* hash,
                            Draft* draft) {
  Split split;
  split.unit = unit;
  split.version = version;
  split.new_unit = unit + shape().units(version);
  split.old_bucket.unit = split.old_overflow.unit = unit;
  const std::span<const Line> lines = std::span(split.old_bucket.lines).first(shape().lines());
  UnitLines read;
  std::vector<ReadIntoVerb> reads;
  reads.push_back(Read(part.BucketAt(unit), BytesOf(std::span(read).first(shape().lines() + 1))));
  co_await Lock(op, part, unit, std::move(reads));
  split.TakeOld(read, shape().lines());
  // Under the lock nobody else splits it, and whoever died over it was followed by somebody who finished.
  const bool behind = VersionOf(lines) == version && split.old_overflow.line.version() == version;
  if (!behind) {
    Unlock(op, part, unit);
    co_return false;
  }
  const Result<bool> published =
      co_await SplitUnderLock(op, part, split, hash, draft, /*absent=*/false).Outcome();
  if (!published.ok()) {
    FreeUnwritten(part, split);
    Unlock(op, part, unit);  // of no effect if the client is broken
    co_return published.error();
  }
  co_return *published;
}

// For the time after a resize, in which most units are to be split: the trip that reads takes the lock too, of the unit that
// the key's is split from. So an insert that has to split takes two trips, like any other. Nothing: it was not so.
Task<std::optional<Table::Attempt>> Table::TryModifyWithSplit(Op& op, const Change& change, Partition& part,
                                                              const KeyHash& hash, Draft& draft,
                                                              Changed& changed, Bucket& met) {
  const uint32_t version = part.directory().version - 1;
  Split split;
  split.version = version;
  split.unit = UnitOf(shape(), hash.number(Candidate::kLevel1), version);
  split.new_unit = split.unit + shape().units(version);
  split.old_bucket.unit = split.old_overflow.unit = split.unit;
  const std::span<const Line> lines = std::span(split.old_bucket.lines).first(shape().lines());
  UnitLines read;
  std::vector<ReadIntoVerb> reads;
  reads.push_back(Read(part.BucketAt(split.unit), BytesOf(std::span(read).first(shape().lines() + 1))));
  View view;
  Choices choices;
  const bool expects_overflow = part.ExpectsOverflow() && !Mutant(kLevel2NotReadBySplit);
  if (expects_overflow) AddReadsOfChoices(part, hash, version, view, choices, reads);
  co_await Lock(op, part, split.unit, std::move(reads));  // trip 1
  split.TakeOld(read, shape().lines());
  const bool behind = VersionOf(lines) == version && split.old_overflow.line.version() == version &&
                      part.directory().version == version + 1;
  part.NoteUnsplit(behind);
  if (!behind) {
    Unlock(op, part, split.unit);
    // It was split already. If the key has stayed, this is its bucket, and need not be read again.
    const bool stayed = UnitOf(shape(), hash.number(Candidate::kLevel1), version + 1) == split.unit;
    const bool current = VersionOf(lines) == version + 1 && part.directory().version == version + 1 &&
                         !part.directory().announced;
    if (current && (stayed || Mutant(kBucketOfParent))) {
      met = split.old_bucket;
      met.version = version + 1;
    }
    co_return std::nullopt;
  }
  part.NoteOverflow(split.old_bucket.overflow());
  split.old_bucket.version = split.old_overflow.version = version;
  view.bucket = split.old_bucket;
  if (expects_overflow) TakeChoices(hash, version, choices, view);
  Result<std::optional<Attempt>> outcome = std::optional<Attempt>();
  outcome = co_await ModifyWithSplit(op, change, part, hash, view, split, draft, changed).Outcome();
  if (!outcome.ok()) FreeUnwritten(part, split);
  if (!split.writing) Unlock(op, part, split.unit);
  // There may be no memory for the nodes of level 3. What needs none, as deleting, can be done without a split: see Replace.
  if (!outcome.ok() && outcome.error().code() == ErrorCode::kOutOfMemory && !split.writing)
    co_return std::nullopt;
  if (!outcome.ok()) co_return outcome.error();
  co_return *outcome;
}

// Under the lock, which the split gives back.
Task<std::optional<Table::Attempt>> Table::ModifyWithSplit(Op& op, const Change& change, Partition& part,
                                                           const KeyHash& hash, View& view, Split& split,
                                                           Draft& draft, Changed& changed) {
  if (view.bucket.overflow() && !Mutant(kLevel2NotReadBySplit)) {
    if (view.first.version == 0) co_await ReadChoices(op, part, hash, split.version, view);
    const auto decides = [&](Candidate candidate, const Overflow& overflow) {
      return Classify(part, hash.number(candidate), overflow.unit, std::span(&overflow.line, 1)) ==
             UnitStatus::kDecides;
    };
    if (!decides(Candidate::kFirstChoice, view.first) || !decides(Candidate::kSecondChoice, view.second))
      co_return std::nullopt;
    co_await EndOverflows(op, part, hash, view);
  }
  BlockBuffer buffer;
  const std::optional<Found> found = co_await FindKey(op, part, hash, view, change.key, buffer);
  std::optional<std::string_view> value;
  if (found.has_value()) value = found->value;
  const Result<Decision> decision = DecideAndDraft(change, part, hash, value, draft, changed);
  if (!decision.ok()) co_return decision.error();
  if (!decision->applied) co_return Attempt::kDone;
  if (!decision->removes && !draft.owned()) co_await draft.FetchRoom(op);
  if (found.has_value()) {
    co_await SplitUnderLock(op, part, split, nullptr, nullptr, /*absent=*/false);
    co_return Attempt::kRetry;
  }
  const bool published = co_await SplitUnderLock(op, part, split, &hash, &draft, /*absent=*/true);  // trip 2
  if (published) part.CountRecords(1);
  co_return published ? Attempt::kDone : Attempt::kRetry;
}

// Returns whether the draft was published. `absent`: the key was looked for under the lock, and is not in the table.
Task<bool> Table::SplitUnderLock(Op& op, Partition& part, Split& split, const KeyHash* hash, Draft* draft,
                                 bool absent) {
  split.old_bucket.version = split.old_overflow.version = split.version;
  Entry added;
  bool added_moves = false;
  if (draft != nullptr && !absent) {
    const uint64_t number = hash->number(Candidate::kLevel1);
    // INVARIANT shard/1. The key was not in the table when the bucket was read. Those who only know the announcement may
    // have inserted since, under the lock: then its tag is in the bucket, or the bucket is full and the key elsewhere.
    const uint64_t tag = TagOf(shape(), number, split.version);
    const bool perhaps_inserted = FindTag(split.old_bucket, shape(), tag, 0).has_value() ||
                                  !FindUnused(split.old_bucket, shape()).has_value();
    if (perhaps_inserted && !Mutant(kBlindFold)) draft = nullptr;
  }
  if (draft != nullptr) {
    const uint64_t number = hash->number(Candidate::kLevel1);
    added = EntryFor(*draft, TagOf(shape(), number, split.version + 1));
    added_moves = UnitOf(shape(), number, split.version + 1) == split.new_unit;
  }
  if (split.old_bucket.overflow()) co_await ProveOverflow(op, part, split);
  co_await DivideBucket(op, part, split, draft == nullptr ? nullptr : &added, added_moves);
  co_await DivideOverflow(op, part, split);
  co_await WriteSplit(op, part, split, draft, /*unlock=*/true);
  co_return split.publishes;
}

// The overflow bit is inherited by both halves, and would be by all of a table that began with one full bucket. While a
// table is small, level 2 can be looked through for keys of the unit: none can come while its lock is held. Searches of
// absent keys then take one trip again.
Task<Done> Table::ProveOverflow(Op& op, Partition& part, Split& split) {
  // Also where others may be splitting to already, if a resize is announced. Taken once: other operations of this client may
  // learn of more while this one waits, but nobody splits to that before this one has ended (shard/5).
  const uint32_t newest = part.directory().newest;
  if (shape().units(newest) > kProvableUnits) co_return Done{};
  // A table that many clients fill while it waits for a resize has more keys in level 2 than are looked through.
  // The unit's own line tells that without a trip.
  const size_t of_a_line = ApproximateEntries(split.old_overflow, shape());
  if (of_a_line * shape().units(split.version) > kProvableEntries) co_return Done{};

  std::vector<Overflow> level2 = co_await ReadLevel2(op, part, newest);
  if (level2.empty()) co_return Done{};
  size_t expected = 0;
  for (const Overflow& overflow : level2) expected += ApproximateEntries(overflow, shape());
  if (expected > kProvableEntries) co_return Done{};
  std::vector<Entry> entries;
  for (Overflow& overflow : level2) {
    if (overflow.line.has_link()) co_await ReadNodes(op, part, overflow);
    for (size_t slot = 0; slot < overflow.slots(shape()); ++slot)
      entries.push_back(overflow.line.entries[slot]);
    for (const Node& node : overflow.nodes)
      entries.insert(entries.end(), node.line.entries.begin(), node.line.entries.begin() + kNodeEntries);
    std::erase_if(entries, [](const Entry& entry) { return !entry.has_block(); });
    if (entries.size() > kProvableEntries) co_return Done{};
  }
  const std::vector<KeyHash> hashes = co_await ReadHashes(op, part, entries);
  const auto any_of_unit = [&](uint64_t unit) {
    return std::any_of(hashes.begin(), hashes.end(), [&](const KeyHash& hash) {
      return UnitOf(shape(), hash.number(Candidate::kLevel1), split.version + 1) == unit;
    });
  };
  split.old_overflow_bit = any_of_unit(split.unit);
  split.new_overflow_bit = any_of_unit(split.new_unit);
  co_return Done{};
}

// The lines of level 2 of all units there may be, without the nodes behind them; none if a key that moves
// meanwhile could be missing. Whole segments are read, since the lines lie apart.
//
// A split moves keys to a later segment, and writes there before it takes them away here (shard/7). So if the
// segments are sampled one after the other, every key is seen in at least one of its places. Where READs have no
// order, they are read twice: a line that was split between its sample and that of the new one has another version
// the second time.
Task<std::vector<Overflow>> Table::ReadLevel2(Op& op, Partition& part, uint32_t newest) {
  const uint64_t units = shape().units(newest);
  const size_t segments = shape().segments(newest);
  const size_t stride = shape().lines() + 1;
  std::vector<Line> all(units * stride);
  std::vector<Overflow> level2(units);
  const int passes = op.client().orders_reads() || Mutant(kOverflowProvedCarelessly) ? 1 : 2;
  for (int pass = 1; pass <= passes; ++pass) {
    Batch trip(op, Order::kInOrder);
    for (size_t i = 0; i < segments; ++i) {
      const size_t segment = Mutant(kOverflowProvedCarelessly) ? segments - 1 - i : i;
      const uint64_t first = shape().FirstUnit(segment);
      const uint64_t count = shape().SegmentUnits(segment);
      trip.Add(Read(part.BucketAt(first), BytesOf(std::span(all).subspan(first * stride, count * stride))));
    }
    co_await trip;
    for (uint64_t unit = 0; unit < units; ++unit) {
      const Line& line = all[unit * stride + stride - 1];
      if (pass == 2 && line.version() != level2[unit].line.version()) co_return std::vector<Overflow>();
      level2[unit].unit = unit;
      level2[unit].line = line;
    }
  }
  co_return std::move(level2);
}

// The full hashes that the blocks of these entries have.
Task<std::vector<KeyHash>> Table::ReadHashes(Op& op, Partition& part, std::span<const Entry> entries) {
  std::vector<std::array<std::byte, pool::kLine>> headers(entries.size());
  for (size_t first = 0; first < entries.size(); first += kHeadersPerTrip) {
    Batch trip(op, Order::kInOrder);
    for (size_t i = first; i < std::min(entries.size(), first + kHeadersPerTrip); ++i)
      trip.Add(ForBlock(Read(FarAddr(part.node(), entries[i].offset()), headers[i])));
    co_await trip;
  }
  std::vector<KeyHash> hashes;
  for (const auto& bytes : headers) {
    pool::BlockHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    hashes.emplace_back(header.hash);
  }
  co_return std::move(hashes);
}

// Level 1. Lines that were written before count as they are; the rest follows from what the old unit still has.
Task<Done> Table::DivideBucket(Op& op, Partition& part, Split& split, const Entry* added, bool added_moves) {
  const std::span<Line> old_lines = std::span(split.old_bucket.lines).first(shape().lines());
  const bool overflow = split.old_bucket.overflow();
  std::array<LineEntries, kMostLines> own;  // what stays, line by line
  std::vector<Entry> kept;                  // in lines that were written
  std::vector<Entry> all;                   // in the others
  std::vector<size_t> line_of;
  for (size_t i = 0; i < old_lines.size(); ++i) {
    for (const Entry& entry : old_lines[i].entries) {
      if (!entry.has_block()) continue;
      if (split.keep_old[i]) {
        own[i].Add(entry);
        kept.push_back(entry);
        continue;
      }
      all.push_back(entry.WithFlag(false));
      line_of.push_back(i);
    }
  }
  std::vector<Entry> tagged = all;
  if (EndsWindow(split.version) && !Mutant(kStaleWindow)) co_await RefreshTags(op, part, split, tagged, true);
  std::vector<Entry> moved;
  size_t staying = kept.size();
  for (size_t i = 0; i < all.size(); ++i) {
    if (Moves(all[i], split.version)) {
      moved.push_back(tagged[i]);
      continue;
    }
    // It may fill a gap already.
    const auto same = [&](const Entry& entry) { return entry.offset() == all[i].offset(); };
    if (std::any_of(kept.begin(), kept.end(), same)) continue;
    own[line_of[i]].Add(tagged[i]);
    ++staying;
  }
  if (added != nullptr && (added_moves ? moved.size() : staying) < shape().slots) {
    if (added_moves) moved.push_back(*added);
    split.publishes = true;
  }
  const bool added_stays = split.publishes && !added_moves;
  const Arrangement arranged = Arrange(own, split.keep_old, added_stays ? added : nullptr);
  split.front = arranged.front;
  const uint32_t next = split.version + 1;
  for (size_t i = 0; i < old_lines.size(); ++i) {
    if (split.keep_old[i]) continue;
    const LineEntries& line = arranged.lines[i];
    Fill(old_lines.subspan(i, 1), std::span(line.entries).first(line.count), next,
         i == 0 && overflow && split.old_overflow_bit);
  }
  // INVARIANT shard/4: the bit follows to the new unit.
  Bucket new_bucket;
  Fill(std::span(new_bucket.lines).first(shape().lines()), moved, next,
       overflow && split.new_overflow_bit && !Mutant(kOverflowNotPassedOn));
  for (size_t i = 0; i < old_lines.size(); ++i) {
    if (!split.keep_new[i]) split.new_bucket.lines[i] = new_bucket.lines[i];
  }
  co_return Done{};
}

// Levels 2 and 3. The line is written whole or not at all.
Task<Done> Table::DivideOverflow(Op& op, Partition& part, Split& split) {
  if (split.keep_old_line) co_return Done{};
  if (split.old_overflow.line.has_link()) co_await ReadNodes(op, part, split.old_overflow);
  const Overflow& old = split.old_overflow;
  std::vector<Entry> all;
  for (size_t slot = 0; slot < old.slots(shape()); ++slot) {
    if (old.line.entries[slot].has_block()) all.push_back(old.line.entries[slot].WithFlag(false));
  }
  for (const Node& node : old.nodes) {
    for (size_t slot = 0; slot < kNodeEntries; ++slot) {
      if (node.line.entries[slot].has_block()) all.push_back(node.line.entries[slot].WithFlag(false));
    }
  }
  std::vector<Entry> tagged = all;
  if (EndsWindow(split.version) && !Mutant(kStaleWindow))
    co_await RefreshTags(op, part, split, tagged, false);
  std::vector<Entry> stay;
  std::vector<Entry> moved;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool moves = Moves(all[i], split.version);
    (moves && !Mutant(kWrongNumber) ? moved : stay).push_back(tagged[i]);
  }
  if (!split.keep_new_line) split.new_line = co_await LayOut(op, part, split, moved);
  split.old_overflow.line = co_await LayOut(op, part, split, stay);
  co_return Done{};
}

// A line of level 2 with these entries; nodes for those that have no room in it.
Task<Line> Table::LayOut(Op& op, Partition& part, Split& split, std::span<const Entry> entries) {
  Line line;
  const bool fits = entries.size() <= shape().overflow_slots;
  const size_t in_line = fits ? entries.size() : std::min<size_t>(shape().overflow_slots, kLinkSlot);
  for (size_t i = 0; i < in_line; ++i) line.entries[i] = entries[i];
  line.set_version(split.version + 1);
  // From the last node to the first, so that each knows its successor.
  const std::span<const Entry> rest = entries.subspan(in_line);
  Entry link;
  for (size_t nodes = (rest.size() + kNodeEntries - 1) / kNodeEntries; nodes > 0; --nodes) {
    Node node;
    node.at = co_await pool_.allocator(part.node()).Allocate(op, sizeof(Line));
    const std::span<const Entry> own = rest.subspan((nodes - 1) * kNodeEntries);
    for (size_t i = 0; i < std::min(own.size(), kNodeEntries); ++i) node.line.entries[i] = own[i];
    node.line.entries[kLinkSlot] = link;
    link = Entry::Link(node.at.offset);
    split.made_nodes.push_back(node);
  }
  if (!link.empty()) line.entries[kLinkSlot] = link;
  co_return line;
}

// The tags have run out of bits to split by: the blocks have the full hashes.
Task<Done> Table::RefreshTags(Op& op, Partition& part, const Split& split, std::vector<Entry>& entries,
                              bool level1) {
  const std::vector<KeyHash> hashes = co_await ReadHashes(op, part, entries);
  for (size_t i = 0; i < entries.size(); ++i) {
    const KeyHash& hash = hashes[i];
    Candidate candidate = Candidate::kLevel1;
    if (!level1) {
      // By which of its two choices it came here.
      const uint64_t first = hash.number(Candidate::kFirstChoice);
      const bool by_first = UnitOf(shape(), first, split.version) == split.unit &&
                            TagOf(shape(), first, split.version) == entries[i].tag();
      candidate = by_first ? Candidate::kFirstChoice : Candidate::kSecondChoice;
    }
    entries[i] = entries[i].WithTag(TagOf(shape(), hash.number(candidate), split.version + 1));
  }
  co_return Done{};
}

// INVARIANTS shard/7 and 8: WRITEs keep their order. The new unit is whole before anything leaves the old one, and the front
// lines of the old bucket before the others (arrange.h): so at any moment every entry that stays is in a line that is
// written, or still in its own.
Task<Done> Table::WriteSplit(Op& op, Partition& part, Split& split, Draft* draft, bool unlock) {
  pool::Allocator& allocator = pool_.allocator(part.node());
  split.writing = true;
  for (size_t first = 0; first < split.made_nodes.size(); first += kNodesPerTrip) {
    Batch trip(op, Order::kInOrder);
    for (size_t i = first; i < std::min(split.made_nodes.size(), first + kNodesPerTrip); ++i)
      trip.Add(Unreachable(WriteObject(split.made_nodes[i].at, split.made_nodes[i].line)));
    co_await trip;
  }
  Batch trip(op, Order::kInOrder);
  if (split.publishes) {
    draft->Publish();
    trip.Add(draft->Write());
  }
  const size_t lines = shape().lines();
  const auto in_far_memory = [&](const Bucket& bucket, const Line& line) {
    UnitLines unit;
    std::copy_n(bucket.lines.begin(), lines, unit.begin());
    unit[lines] = line;
    return unit;
  };
  const auto kept = [&](const std::array<bool, kMostLines>& of_bucket, bool of_line) {
    std::array<bool, kMostLines + 1> keep{};
    std::copy_n(of_bucket.begin(), lines, keep.begin());
    keep[lines] = of_line;
    return keep;
  };
  const UnitLines new_unit = in_far_memory(split.new_bucket, split.new_line);
  const UnitLines old_unit = in_far_memory(split.old_bucket, split.old_overflow.line);
  const std::array<bool, kMostLines + 1> keep_new = kept(split.keep_new, split.keep_new_line);
  const std::array<bool, kMostLines + 1> keep_old = kept(split.keep_old, split.keep_old_line);
  // In one WRITE, but for what is kept.
  const auto write = [&](FarAddr at, const UnitLines& unit, const auto& keep, size_t first, size_t end) {
    for (size_t last = first; first < end; first = last) {
      while (last < end && keep[last] == keep[first]) ++last;
      const std::span<const Line> some = std::span(unit).subspan(first, last - first);
      if (!keep[first]) trip.Add(Write(at + first * sizeof(Line), std::as_bytes(some)));
    }
  };
  const FarAddr new_at = part.BucketAt(split.new_unit);
  const FarAddr old_at = part.BucketAt(split.unit);
  if (!Mutant(kParentFirst)) write(new_at, new_unit, keep_new, 0, lines + 1);
  if (Mutant(kBackLinesFirst)) write(old_at, old_unit, keep_old, split.front, lines + 1);
  write(old_at, old_unit, keep_old, 0, split.front);
  if (!Mutant(kBackLinesFirst)) write(old_at, old_unit, keep_old, split.front, lines + 1);
  if (Mutant(kParentFirst)) write(new_at, new_unit, keep_new, 0, lines + 1);
  const uint64_t mine = LockedBySelf(part, split.unit);
  size_t unlocked = 0;
  if (unlock) unlocked = trip.Add(Cas(part.LockAt(split.unit), mine, 0));
  co_await trip;
  if (unlock && trip.Old(unlocked) != mine) {
    co_return Error(ErrorCode::kFenced,
                    "a lock was taken from this client, which was taken for dead; reconnect");
  }
  for (const Node& node : split.old_overflow.nodes)
    allocator.Retire(node.at, sizeof(Line), pool_.published_epoch(part.node()));
  co_return Done{};
}

// Whoever held the lock is gone. It may have been splitting the unit; then some lines of the new unit, or all of them and
// some of the old one, have the next version.
Task<Done> Table::FinishSplit(Op& op, Partition& part, uint64_t unit) {
  co_await part.Refresh(op);
  const Directory& directory = part.directory();
  if (unit >= shape().units(directory.version)) {
    co_return Error(ErrorCode::kCorrupt,
                    fmt::format("a lock names unit {}, which is not in the table", unit));
  }
  Split split;
  split.unit = unit;
  split.old_bucket.unit = split.old_overflow.unit = unit;
  const size_t lines = shape().lines();
  const std::span<Line> old_lines = std::span(split.old_bucket.lines).first(lines);
  const std::span<Line> new_lines = std::span(split.new_bucket.lines).first(lines);
  co_await op.InOrder(Read(part.BucketAt(unit), BytesOf(old_lines)),
                      Read(part.OverflowAt(unit), BytesOf(std::span(&split.old_overflow.line, 1))));
  uint32_t lowest = split.old_overflow.line.version();
  uint32_t highest = lowest;
  for (const Line& line : old_lines) {
    lowest = std::min(lowest, line.version());
    highest = std::max(highest, line.version());
  }
  // Of the version that all have, or will have.
  if (lowest == 0 || lowest >= directory.version) co_return Done{};
  split.version = lowest;
  split.new_unit = unit + shape().units(lowest);
  co_await op.InOrder(Read(part.BucketAt(split.new_unit), BytesOf(new_lines)),
                      Read(part.OverflowAt(split.new_unit), BytesOf(std::span(&split.new_line, 1))));
  bool begun = highest > lowest || split.new_line.version() != 0;
  for (size_t i = 0; i < lines; ++i) {
    const bool redo = Mutant(kRedoneFromScratch);
    split.keep_old[i] = old_lines[i].version() > lowest;
    split.keep_new[i] = new_lines[i].version() != 0 && !redo;
    begun |= new_lines[i].version() != 0;
  }
  if (!begun) co_return Done{};
  split.keep_old_line = split.old_overflow.line.version() > lowest;
  split.keep_new_line = split.new_line.version() != 0 && !Mutant(kRedoneFromScratch);
  split.old_bucket.version = split.old_overflow.version = lowest;
  co_await DivideBucket(op, part, split, nullptr, false);
  const Result<Done> divided = co_await DivideOverflow(op, part, split).Outcome();
  if (!divided.ok()) {
    FreeUnwritten(part, split);
    co_return divided.error();
  }
  co_await WriteSplit(op, part, split, nullptr, /*unlock=*/false);
  co_return Done{};
}

// There was no room for all the nodes. If the split failed while it was written, they stay: they may be reachable.
void Table::FreeUnwritten(Partition& part, Split& split) {
  if (split.writing) return;
  for (const Node& node : split.made_nodes)
    pool_.allocator(part.node()).FreeUnpublished(node.at, sizeof(Line));
  split.made_nodes.clear();
}

}  // namespace farside::index::shard
