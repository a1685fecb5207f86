#include "index/sephash/tag_renewal.h"

#include <algorithm>
#include <utility>

#include "index/sephash/errors.h"
#include "pool/memory/block.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Order;
using fabric::Read;

namespace {

auto ReadHash(const Access& at, Entry entry, uint64_t& hash) {
  const FarAddr hash_at(at.node(), entry.offset() + offsetof(pool::BlockHeader, hash));
  return ForBlock(Read(hash_at, std::as_writable_bytes(std::span(&hash, 1))));
}

Status CheckHashes(const Access& at, std::span<const Entry> entries, std::span<const uint64_t> hashes) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!MayBeTagOf(entries[i].tag(), hashes[i]))
      return DamagedMain(FarAddr(at.node(), entries[i].offset()), "names a block of another key");
  }
  return OkStatus();
}

}  // namespace

TagRenewal::TagRenewal(const Access& at, uint32_t depth, std::span<const Entry> main, size_t most)
    : shape_(at.shape()), group_(GroupOf(at.shape(), depth)) {
  for (size_t i = 0; i < main.size() && old_.size() < most; ++i) {
    if (!IsOfGroup(main[i].tag(), shape_, group_)) old_.push_back(main[i]);
  }
  hashes_.resize(old_.size());
}

void TagRenewal::AddReads(const Access& at, fabric::Batch& reads) {
  for (size_t i = 0; i < old_.size(); ++i) reads.Add(ReadHash(at, old_[i], hashes_[i]));
}

Status TagRenewal::Apply(const Access& at, std::vector<Entry>& entries) const {
  const Status sound = CheckHashes(at, old_, hashes_);
  if (!sound.ok()) return sound;
  // All are found before the first is changed: then the entries are not sorted any more.
  std::vector<Entry*> found;
  for (const Entry& old : old_) {
    const auto entry = std::lower_bound(entries.begin(), entries.end(), old);
    found.push_back(entry != entries.end() && *entry == old ? &*entry : nullptr);
  }
  for (size_t i = 0; i < old_.size(); ++i) {
    if (found[i] != nullptr) *found[i] = old_[i].WithTag(TagInGroup(hashes_[i], shape_, group_));
  }
  if (!old_.empty()) std::sort(entries.begin(), entries.end());
  return OkStatus();
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

Task<std::vector<uint64_t>> ReadHashes(Access at, std::span<const Entry> entries) {
  std::vector<uint64_t> hashes(entries.size());
  for (size_t first = 0; first < entries.size(); first += fabric::kMaxVerbsPerTrip) {
    const size_t end = std::min(entries.size(), first + fabric::kMaxVerbsPerTrip);
    fabric::Batch reads(at.op, Order::kTogether);
    for (size_t i = first; i < end; ++i) reads.Add(ReadHash(at, entries[i], hashes[i]));
    co_await reads;
  }
  const Status sound = CheckHashes(at, entries, hashes);
  if (!sound.ok()) co_return sound.error();
  co_return std::move(hashes);
}

}  // namespace farside::index::sephash
