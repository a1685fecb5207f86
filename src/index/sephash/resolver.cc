#include "index/sephash/resolver.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "index/kit/block_buffer.h"
#include "index/sephash/errors.h"
#include "index/sephash/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Order;
using fabric::Read;

namespace {

constexpr size_t kKeyInHead = pool::kLine - sizeof(pool::BlockHeader);

// A block that several entries with one tag may name, and its first line.
struct Head {
  uint64_t offset = 0;
  uint64_t bytes = 0;  // of the block; 0: not known yet
  bool wanted = false;
  std::array<std::byte, pool::kLine> line{};

  pool::BlockHeader header() const {
    pool::BlockHeader read;
    std::memcpy(&read, line.data(), sizeof read);
    return read;
  }
  std::string_view key_in_line() const {
    return AsText(std::span(line).subspan(sizeof(pool::BlockHeader)))
        .substr(0, std::min<size_t>(header().key_bytes, kKeyInHead));
  }
};

// Entries that share a tag: of the MainSegment, with the tag that they have in this group of depth bits or in
// the one before, and of the round, in the order of their age.
struct Group {
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
    FindGroups(at.shape(), look);
  }

  std::vector<Head>& heads() { return heads_; }

  // Splits a group into its keys, and each key into what is kept and what is not.
  Task<Done> Divide(Access at, Group group);
  Task<Merged> Finish(Access at);

 private:
  void FindGroups(const Shape& shape, const Look& look);
  std::span<const Entry> MainWith(Tag tag) const;
  void AddHeads(const Group& group);
  Head& HeadOf(Entry entry) {
    return *std::lower_bound(heads_.begin(), heads_.end(), entry.offset(),
                             [](const Head& head, uint64_t offset) { return head.offset < offset; });
  }
  Task<bool> SameKey(Access at, Entry a, Entry b);
  void Keep(std::span<const Entry> of_key, size_t from_main);
  void Drop(Entry entry, bool named_by_slot);

  std::vector<Entry> round_;  // by tag, then by age
  std::span<const Entry> main_;
  std::vector<Group> groups_;   // that have more to say than their one entry
  std::vector<Head> heads_;     // of the blocks of these, by offset
  std::vector<Entry> removed_;  // from the MainSegment
  std::vector<Entry> added_;
  Merged merged_;
};

std::span<const Entry> Resolution::MainWith(Tag tag) const {
  const auto by_tag = [](Entry entry, Tag wanted) { return entry.tag() < wanted; };
  const auto first = std::lower_bound(main_.begin(), main_.end(), tag, by_tag);
  return {first, std::lower_bound(first, main_.end(), tag + 1, by_tag)};
}

void Resolution::FindGroups(const Shape& shape, const Look& look) {
  for (auto first = round_.begin(); first != round_.end();) {
    const Tag tag = first->tag();
    const Tag before = TagBefore(tag, look.suffix(), shape, look.depth());
    const auto end = std::find_if(first, round_.end(), [tag](Entry entry) { return entry.tag() != tag; });
    Group group{.main = MainWith(tag), .main_before = {}, .round = {first, end}};
    if (before != tag && !Mutant(kTagsBeforeForgotten)) group.main_before = MainWith(before);
    if (group.is_alone() && !first->is_tombstone()) {
      added_.push_back(*first);
    } else {
      groups_.push_back(group);
      AddHeads(group);
    }
    first = end;
  }
  // Entries of one block are of one key: what is known of one is known of all.
  std::sort(heads_.begin(), heads_.end(), [](const Head& a, const Head& b) {
    return std::pair(a.offset, ~a.bytes) < std::pair(b.offset, ~b.bytes);
  });
  for (size_t i = 1; i < heads_.size(); ++i) {
    if (heads_[i].offset == heads_[i - 1].offset && heads_[i].wanted) heads_[i - 1].wanted = true;
  }
  heads_.erase(std::unique(heads_.begin(), heads_.end(),
                           [](const Head& a, const Head& b) { return a.offset == b.offset; }),
               heads_.end());
  for (Head& head : heads_) head.wanted |= head.bytes == 0;
}

void Resolution::AddHeads(const Group& group) {
  const size_t before = heads_.size();
  bool several = false;
  for (const std::span<const Entry> some : {group.main, group.main_before, group.round}) {
    for (const Entry& entry : some) {
      several |= heads_.size() > before && heads_.back().offset != entry.offset();
      heads_.push_back({.offset = entry.offset(), .bytes = entry.bytes()});
    }
  }
  for (size_t i = before; i < heads_.size(); ++i) heads_[i].wanted = several;
}

Task<bool> Resolution::SameKey(Access at, Entry a, Entry b) {
  if (a.offset() == b.offset()) co_return true;
  const Head& one = HeadOf(a);
  const Head& other = HeadOf(b);
  const pool::BlockHeader header = one.header();
  if (header.hash != other.header().hash || header.key_bytes != other.header().key_bytes) co_return false;
  if (one.key_in_line() != other.key_in_line()) co_return false;
  if (header.key_bytes <= kKeyInHead) co_return true;
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
  const DroppedBlock block(entry.offset(), HeadOf(entry).bytes);
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

Task<Done> Resolution::Divide(Access at, Group group) {
  std::vector<Entry> left(group.main.begin(), group.main.end());
  left.insert(left.end(), group.main_before.begin(), group.main_before.end());
  size_t main_left = left.size();
  left.insert(left.end(), group.round.begin(), group.round.end());
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
  for (const Group& group : groups_) co_await Divide(at, group);
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

namespace {

// Entries of a MainSegment whose tags are of the group before, and the hashes that their blocks have.
class Renewal {
 public:
  Renewal(const Access& at, uint32_t depth, std::span<const Entry> main, size_t most)
      : shape_(at.shape()), group_(GroupOf(at.shape(), depth)) {
    for (size_t i = 0; i < main.size() && entries_.size() < most; ++i) {
      if (!IsOfGroup(main[i].tag(), shape_, group_)) entries_.push_back(main[i]);
    }
    hashes_.resize(entries_.size());
  }

  void AddReads(const Access& at, fabric::Batch& reads) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const FarAddr hash_at(at.node(), entries_[i].offset() + offsetof(pool::BlockHeader, hash));
      reads.Add(ForBlock(Read(hash_at, std::as_writable_bytes(std::span(&hashes_[i], 1)))));
    }
  }
  // Those that are still there get the tags that they have in this group.
  Status Apply(const Access& at, std::vector<Entry>& entries) const {
    std::vector<Entry*> found;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (hashes_[i] >> (64 - kFingerprintBits) != entries_[i].tag() >> 9)
        return DamagedMain(FarAddr(at.node(), entries_[i].offset()), "names a block of another key");
      const auto entry = std::lower_bound(entries.begin(), entries.end(), entries_[i]);
      found.push_back(entry != entries.end() && *entry == entries_[i] ? &*entry : nullptr);
    }
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (found[i] != nullptr) *found[i] = entries_[i].WithTag(TagInGroup(hashes_[i], shape_, group_));
    }
    if (!entries_.empty()) std::sort(entries.begin(), entries.end());
    return OkStatus();
  }

 private:
  const Shape& shape_;
  const uint32_t group_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> hashes_;
};

}  // namespace

Task<Merged> Resolve(Access at, const Look& look, std::span<const Entry> main, size_t renewals) {
  Resolution resolution(at, look, main);
  std::vector<Head*> wanted;
  for (Head& head : resolution.heads()) {
    if (head.wanted) wanted.push_back(&head);
  }
  // They are read by a trip that is made anyway, or by one.
  const size_t along = wanted.size() % fabric::kAnsweredVerbsPerRoundTrip;
  Renewal renewal(at, look.depth(), main, renewals - std::min(renewals, along));
  for (size_t first = 0; first == 0 || first < wanted.size(); first += fabric::kAnsweredVerbsPerRoundTrip) {
    const size_t end = std::min(wanted.size(), first + fabric::kAnsweredVerbsPerRoundTrip);
    fabric::Batch reads(at.op, Order::kTogether);
    for (size_t i = first; i < end; ++i)
      reads.Add(ForBlock(Read(FarAddr(at.node(), wanted[i]->offset), wanted[i]->line)));
    if (end == wanted.size()) renewal.AddReads(at, reads);
    co_await reads;
  }
  for (Head* head : wanted) {
    const Result<uint64_t> bytes = pool::BlockBytesFromHeader(head->line);
    if (!bytes.ok()) co_return bytes.error();
    head->bytes = *bytes;
  }
  Merged merged = co_await resolution.Finish(at);
  const Status renewed = renewal.Apply(at, merged.entries);
  if (!renewed.ok()) co_return renewed.error();
  co_return std::move(merged);
}

Task<std::vector<uint64_t>> ReadHashes(Access at, std::span<const Entry> entries) {
  std::vector<uint64_t> hashes(entries.size());
  for (size_t first = 0; first < entries.size(); first += fabric::kMaxVerbsPerTrip) {
    const size_t end = std::min(entries.size(), first + fabric::kMaxVerbsPerTrip);
    fabric::Batch reads(at.op, Order::kTogether);
    for (size_t i = first; i < end; ++i) {
      const FarAddr hash_at(at.node(), entries[i].offset() + offsetof(pool::BlockHeader, hash));
      reads.Add(ForBlock(Read(hash_at, std::as_writable_bytes(std::span(&hashes[i], 1)))));
    }
    co_await reads;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (hashes[i] >> (64 - kFingerprintBits) != entries[i].tag() >> 9)
      co_return DamagedMain(FarAddr(at.node(), entries[i].offset()), "names a block of another key");
  }
  co_return std::move(hashes);
}

Task<Done> RenewTags(Access at, uint32_t group, std::vector<Entry>& entries) {
  std::vector<Entry> old;
  std::vector<Entry> renewed;
  for (const Entry& entry : entries)
    (IsOfGroup(entry.tag(), at.shape(), group) ? renewed : old).push_back(entry);
  if (old.empty()) co_return Done{};
  const std::vector<uint64_t> hashes = co_await ReadHashes(at, old);
  for (size_t i = 0; i < old.size(); ++i)
    renewed.push_back(old[i].WithTag(TagInGroup(hashes[i], at.shape(), group)));
  std::sort(renewed.begin(), renewed.end());
  entries = std::move(renewed);
  co_return Done{};
}

}  // namespace farside::index::sephash
