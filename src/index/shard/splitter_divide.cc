// Which entries of a unit go to the new unit, and which stay.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "index/shard/mutants.h"
#include "index/shard/splitter.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::Batch;
using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Order;
using fabric::Read;

namespace {

constexpr size_t kHeadersPerTrip = 16;

}  // namespace

Task<Done> Splitter::Divide(Access at, Split& split, const AddedEntry* added) {
  const Unwritten unwritten = UnwrittenOf(split);
  std::vector<Entry> tagged = unwritten.entries;
  if (EndsWindow(split.version) && !Mutant(kStaleWindow))
    co_await RefreshTags(at, split, tagged, /*level1=*/true);
  DivideBucket(split, unwritten, tagged, added);
  // Levels 2 and 3: the line is written whole or not at all.
  if (!split.keep_old_line) co_await DivideOverflow(at, split);
  co_return Done{};
}

Task<Done> Splitter::DivideOverflow(Access at, Split& split) {
  if (split.old_overflow.line.has_link()) co_await ReadNodes(at, split.old_overflow);
  const std::vector<Entry> all = OverflowEntriesOf(split);
  std::vector<Entry> tagged = all;
  if (EndsWindow(split.version) && !Mutant(kStaleWindow))
    co_await RefreshTags(at, split, tagged, /*level1=*/false);
  std::vector<Entry> stay;
  std::vector<Entry> moved;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool moves = Moves(all[i], split.version);
    (moves && !Mutant(kWrongNumber) ? moved : stay).push_back(tagged[i]);
  }
  if (!split.keep_new_line) split.new_line = co_await LayOut(at, split, moved);
  split.old_overflow.line = co_await LayOut(at, split, stay);
  co_return Done{};
}

// A line of level 2 with these entries; nodes for the entries that have no room in it.
Task<Line> Splitter::LayOut(Access at, Split& split, std::span<const Entry> entries) {
  Line line;
  const size_t overflow_slots = at.shape().overflow_slots;
  const bool fits = entries.size() <= overflow_slots;
  const size_t in_line = fits ? entries.size() : std::min(overflow_slots, kLinkSlot);
  for (size_t i = 0; i < in_line; ++i) line.entries[i] = entries[i];
  line.set_version(split.version + 1);
  // From the last node to the first, so that each knows its successor.
  const std::span<const Entry> rest = entries.subspan(in_line);
  Entry link;
  for (size_t nodes = (rest.size() + kNodeEntries - 1) / kNodeEntries; nodes > 0; --nodes) {
    Node node;
    node.at = co_await pool_.allocator(at.part.node()).Allocate(at.op, sizeof(Line));
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
Task<Done> Splitter::RefreshTags(Access at, const Split& split, std::vector<Entry>& entries, bool level1) {
  const Shape& shape = at.shape();
  const std::vector<KeyHash> hashes = co_await ReadHashes(at, entries);
  for (size_t i = 0; i < entries.size(); ++i) {
    const KeyHash& hash = hashes[i];
    Candidate candidate = Candidate::kLevel1;
    if (!level1) {
      // By which of its two choices it came here.
      const uint64_t first = hash.number(Candidate::kFirstChoice);
      const bool by_first = UnitOf(shape, first, split.version) == split.unit &&
                            TagOf(shape, first, split.version) == entries[i].tag();
      candidate = by_first ? Candidate::kFirstChoice : Candidate::kSecondChoice;
    }
    entries[i] = entries[i].WithTag(TagOf(shape, hash.number(candidate), split.version + 1));
  }
  co_return Done{};
}

// The full hashes that the blocks of these entries have.
Task<std::vector<KeyHash>> Splitter::ReadHashes(Access at, std::span<const Entry> entries) {
  std::vector<std::array<std::byte, pool::kLine>> headers(entries.size());
  for (size_t first = 0; first < entries.size(); first += kHeadersPerTrip) {
    Batch trip(at.op, Order::kInOrder);
    for (size_t i = first; i < std::min(entries.size(), first + kHeadersPerTrip); ++i)
      trip.Add(ForBlock(Read(FarAddr(at.part.node(), entries[i].offset()), headers[i])));
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

}  // namespace farside::index::shard
