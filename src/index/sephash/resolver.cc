#include "index/sephash/resolver.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "index/kit/block_buffer.h"
#include "index/sephash/mutants.h"
#include "index/sephash/tag_renewal.h"
#include "pool/memory/block.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Order;
using fabric::Read;

namespace {

constexpr size_t kKeyInFirstLine = pool::kLine - sizeof(pool::BlockHeader);

// A block that entries which share a tag name, and its first line.
struct NamedBlock {
  uint64_t offset = 0;
  uint64_t bytes = 0;   // of the block; 0: not known yet
  bool wanted = false;  // its first line has to be read
  std::array<std::byte, pool::kLine> line{};

  pool::BlockHeader header() const {
    pool::BlockHeader read;
    std::memcpy(&read, line.data(), sizeof read);
    return read;
  }
  std::string_view key_in_line() const {
    return AsText(std::span(line).subspan(sizeof(pool::BlockHeader)))
        .substr(0, std::min<size_t>(header().key_bytes(), kKeyInFirstLine));
  }
};

// Entries that share a tag: of the MainSegment, with the tag that they have in this group of depth bits or in
// the one before, and of the round, in the order of their age.
struct SharedTag {
  std::span<const Entry> main;
  std::span<const Entry> main_before;
  std::span<const Entry> round;

  bool is_alone() const { return main.empty() && main_before.empty() && round.size() == 1; }
};

class Resolution {
 public:
  Resolution(const Access& at, const Look& look, std::span<const Entry> main) : main_(main) {
    for (const Entry& entry : look.entries()) {
      if (entry.epoch() == look.epoch() && !entry.is_padding()) round_.push_back(entry.WithEpoch(0));
    }
    if (Mutant(kMergeDropsLast) && !round_.empty()) round_.pop_back();
    // Stable: within a tag, the order of age stays.
    std::stable_sort(round_.begin(), round_.end(), [](Entry a, Entry b) { return a.tag() < b.tag(); });
    FindSharedTags(at.shape(), look);
  }

  std::vector<NamedBlock>& blocks() { return blocks_; }

  // Tells the keys apart that share a tag, and of each key what is kept and what is not.
  Task<Done> Separate(Access at, SharedTag shared);
  Task<Merged> Finish(Access at);

 private:
  void FindSharedTags(const Shape& shape, const Look& look);
  std::span<const Entry> MainWith(Tag tag) const;
  void AddBlocks(const SharedTag& shared);
  NamedBlock& BlockOf(Entry entry) {
    return *std::lower_bound(blocks_.begin(), blocks_.end(), entry.offset(),
                             [](const NamedBlock& block, uint64_t offset) { return block.offset < offset; });
  }
  Task<bool> SameKey(Access at, Entry a, Entry b);
  void Keep(std::span<const Entry> of_key, size_t from_main);
  void Drop(Entry entry, bool named_by_slot);

  std::vector<Entry> round_;  // by tag, then by age
  std::span<const Entry> main_;
  std::vector<SharedTag> shared_;   // all but those of one entry that is kept
  std::vector<NamedBlock> blocks_;  // that entries of these name, by offset
  std::vector<Entry> removed_;      // from the MainSegment
  std::vector<Entry> added_;
  Merged merged_;
};

std::span<const Entry> Resolution::MainWith(Tag tag) const {
  const auto by_tag = [](Entry entry, Tag wanted) { return entry.tag() < wanted; };
  const auto first = std::lower_bound(main_.begin(), main_.end(), tag, by_tag);
  return {first, std::lower_bound(first, main_.end(), tag + 1, by_tag)};
}

void Resolution::FindSharedTags(const Shape& shape, const Look& look) {
  for (auto first = round_.begin(); first != round_.end();) {
    const Tag tag = first->tag();
    const Tag before = TagBefore(tag, look.suffix(), shape, look.depth());
    const auto end = std::find_if(first, round_.end(), [tag](Entry entry) { return entry.tag() != tag; });
    SharedTag shared{.main = MainWith(tag), .main_before = {}, .round = {first, end}};
    if (before != tag && !Mutant(kTagsBeforeForgotten)) shared.main_before = MainWith(before);
    if (shared.is_alone() && !first->is_tombstone()) {
      added_.push_back(*first);
    } else {
      shared_.push_back(shared);
      AddBlocks(shared);
    }
    first = end;
  }
  // Entries of one block are of one key: what is known of one is known of all.
  std::sort(blocks_.begin(), blocks_.end(), [](const NamedBlock& a, const NamedBlock& b) {
    return std::pair(a.offset, ~a.bytes) < std::pair(b.offset, ~b.bytes);
  });
  for (size_t i = 1; i < blocks_.size(); ++i) {
    if (blocks_[i].offset == blocks_[i - 1].offset && blocks_[i].wanted) blocks_[i - 1].wanted = true;
  }
  blocks_.erase(std::unique(blocks_.begin(), blocks_.end(),
                            [](const NamedBlock& a, const NamedBlock& b) { return a.offset == b.offset; }),
                blocks_.end());
  for (NamedBlock& block : blocks_) block.wanted |= block.bytes == 0;
}

void Resolution::AddBlocks(const SharedTag& shared) {
  const size_t before = blocks_.size();
  bool several = false;
  for (const std::span<const Entry> some : {shared.main, shared.main_before, shared.round}) {
    for (const Entry& entry : some) {
      several |= blocks_.size() > before && blocks_.back().offset != entry.offset();
      blocks_.push_back({.offset = entry.offset(), .bytes = entry.bytes()});
    }
  }
  for (size_t i = before; i < blocks_.size(); ++i) blocks_[i].wanted = several;
}

Task<bool> Resolution::SameKey(Access at, Entry a, Entry b) {
  if (a.offset() == b.offset()) co_return true;
  const NamedBlock& one = BlockOf(a);
  const NamedBlock& other = BlockOf(b);
  const pool::BlockHeader header = one.header();
  if (header.hash != other.header().hash || header.key_bytes() != other.header().key_bytes()) co_return false;
  if (one.key_in_line() != other.key_in_line()) co_return false;
  if (header.key_bytes() <= kKeyInFirstLine) co_return true;
  // The keys begin alike and have the same hash: nearly always they are the same.
  BlockBuffer first;
  BlockBuffer second;
  co_await ReadBlock(at.op, FarAddr(at.node(), one.offset), one.bytes, first);
  co_await ReadBlock(at.op, FarAddr(at.node(), other.offset), other.bytes, second);
  const Result<pool::BlockView> first_view = pool::DecodeBlock(first.bytes());
  if (!first_view.ok()) co_return first_view.error();
  const Result<pool::BlockView> second_view = pool::DecodeBlock(second.bytes());
  if (!second_view.ok()) co_return second_view.error();
  co_return first_view->key == second_view->key;
}

void Resolution::Drop(Entry entry, bool named_by_slot) {
  const DroppedBlock block(entry.offset(), BlockOf(entry).bytes);
  std::vector<DroppedBlock>& list =
      named_by_slot && !Mutant(kRetiredWhileNamed) ? merged_.dropped : merged_.replaced;
  if (std::find(list.begin(), list.end(), block) == list.end()) list.push_back(block);
}

// Entries of one key, the oldest first; the first `from_main` of them (one at most) stand in the MainSegment.
void Resolution::Keep(std::span<const Entry> of_key, size_t from_main) {
  const Entry latest = of_key.back();
  const std::span<const Entry> of_round = of_key.subspan(from_main);
  const auto named_by_slot = [of_round](Entry entry) {
    return std::any_of(of_round.begin(), of_round.end(),
                       [entry](Entry other) { return other.offset() == entry.offset(); });
  };
  const bool is_kept = !latest.is_tombstone();
  if (is_kept && !of_round.empty()) added_.push_back(latest);
  if (from_main > 0 && !of_round.empty()) removed_.push_back(of_key.front());
  for (const Entry& entry : of_key) {
    if (is_kept && entry.offset() == latest.offset()) continue;
    Drop(entry, named_by_slot(entry));
  }
}

Task<Done> Resolution::Separate(Access at, SharedTag shared) {
  std::vector<Entry> left(shared.main.begin(), shared.main.end());
  left.insert(left.end(), shared.main_before.begin(), shared.main_before.end());
  size_t main_left = left.size();
  left.insert(left.end(), shared.round.begin(), shared.round.end());
  while (!left.empty()) {
    std::vector<Entry> of_key = {left.front()};
    std::vector<Entry> others;
    const size_t from_main = main_left > 0 ? 1 : 0;
    size_t others_in_main = 0;
    for (size_t i = 1; i < left.size(); ++i) {
      const bool same = co_await SameKey(at, left.front(), left[i]);
      if (same) {
        of_key.push_back(left[i]);
      } else {
        others_in_main += i < main_left ? 1 : 0;
        others.push_back(left[i]);
      }
    }
    Keep(of_key, from_main);
    left = std::move(others);
    main_left = others_in_main;
  }
  co_return Done{};
}

Task<Merged> Resolution::Finish(Access at) {
  for (const SharedTag& shared : shared_) co_await Separate(at, shared);
  std::sort(removed_.begin(), removed_.end());
  std::set_difference(main_.begin(), main_.end(), removed_.begin(), removed_.end(),
                      std::back_inserter(merged_.entries));
  const auto middle = static_cast<ptrdiff_t>(merged_.entries.size());
  std::sort(added_.begin(), added_.end());
  merged_.entries.insert(merged_.entries.end(), added_.begin(), added_.end());
  std::inplace_merge(merged_.entries.begin(), merged_.entries.begin() + middle, merged_.entries.end());
  co_return std::move(merged_);
}

}  // namespace

Task<Merged> Resolve(Access at, const Look& look, std::span<const Entry> main, size_t renewals) {
  Resolution resolution(at, look, main);
  std::vector<NamedBlock*> wanted;
  for (NamedBlock& block : resolution.blocks()) {
    if (block.wanted) wanted.push_back(&block);
  }
  // Hashes are read along with the last blocks, as many as that trip has room for.
  const size_t along = wanted.size() % fabric::kAnsweredVerbsPerRoundTrip;
  TagRenewal renewal(at, look.depth(), main, renewals - std::min(renewals, along));
  for (size_t first = 0; first == 0 || first < wanted.size(); first += fabric::kAnsweredVerbsPerRoundTrip) {
    const size_t end = std::min(wanted.size(), first + fabric::kAnsweredVerbsPerRoundTrip);
    fabric::Batch reads(at.op, Order::kTogether);
    for (size_t i = first; i < end; ++i)
      reads.Add(ForBlock(Read(FarAddr(at.node(), wanted[i]->offset), wanted[i]->line)));
    if (end == wanted.size()) renewal.AddReads(at, reads);
    co_await reads;
  }
  for (NamedBlock* block : wanted) {
    const Result<uint64_t> bytes = pool::BlockBytesFromHeader(block->line);
    if (!bytes.ok()) co_return bytes.error();
    block->bytes = *bytes;
  }
  Merged merged = co_await resolution.Finish(at);
  const Status renewed = renewal.Apply(at, merged.entries);
  if (!renewed.ok()) co_return renewed.error();
  co_return std::move(merged);
}

}  // namespace farside::index::sephash
