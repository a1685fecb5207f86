#include "index/shard/find_key.h"

#include "index/shard/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Read;

Result<std::optional<std::string_view>> ValueIfKey(std::span<const std::byte> block, std::string_view key) {
  const Result<pool::BlockView> view = pool::DecodeBlock(block);
  if (!view.ok()) return view.error();
  if (view->key != key && !Mutant(kTagIsKey)) return std::optional<std::string_view>();
  return std::optional<std::string_view>(view->value);
}

Task<std::optional<Found>> FindKey(const KeyAccess& at, const View& view, BlockBuffer& buffer) {
  std::optional<Found> found = co_await FindInBucket(at, view.bucket, buffer);
  if (!found.has_value() && view.bucket.overflow()) found = co_await FindInOverflows(at, view, buffer);
  co_return found;
}

Task<std::optional<Found>> FindInBucket(const KeyAccess& at, const Bucket& bucket, BlockBuffer& buffer) {
  const uint64_t tag = at.tag(Candidate::kLevel1, bucket.version);
  for (auto slot = FindTag(bucket, at.shape(), tag, 0); slot.has_value();
       slot = FindTag(bucket, at.shape(), tag, *slot + 1)) {
    const Entry entry = bucket.entry(*slot);
    const FarAddr block_at(at.part.node(), entry.offset());
    if (entry.bytes() != 0) {
      co_await at.op.InOrder(ForBlock(Read(block_at, buffer.Resize(entry.bytes()))));
    } else {
      co_await ReadBlock(at.op, block_at, entry.bytes(), buffer);
    }
    const Result<std::optional<std::string_view>> value = ValueIfKey(buffer.bytes(), at.key);
    if (!value.ok()) co_return value.error();
    if (value->has_value()) co_return Found{.slot = SlotOf(at.part, bucket, *slot), .value = **value};
  }
  co_return std::nullopt;
}

Task<std::optional<Found>> FindInOverflows(const KeyAccess& at, const View& view, BlockBuffer& buffer) {
  for (const Candidate candidate : kChoices) {
    if (candidate == Candidate::kSecondChoice && !view.has_second) continue;
    const Overflow& overflow = view.choice(candidate);
    const uint64_t tag = at.tag(candidate, overflow.version);
    Slot slot{.candidate = candidate, .unit = overflow.unit, .version = overflow.version};
    for (size_t line = 0; line <= overflow.nodes.size(); ++line) {
      const bool is_node = line > 0;
      const Line& entries = is_node ? overflow.nodes[line - 1].line : overflow.line;
      const FarAddr line_at = is_node ? overflow.nodes[line - 1].at : at.part.OverflowAt(overflow.unit);
      const size_t slots = is_node ? kNodeEntries : overflow.slots(at.shape());
      for (size_t i = 0; i < slots; ++i) {
        slot.entry = entries.entries[i];
        if (slot.entry.tag() != tag || !slot.entry.has_block()) continue;
        slot.at = line_at + i * sizeof(Entry);
        co_await ReadBlock(at.op, FarAddr(at.part.node(), slot.entry.offset()), slot.entry.bytes(), buffer);
        const Result<std::optional<std::string_view>> value = ValueIfKey(buffer.bytes(), at.key);
        if (!value.ok()) co_return value.error();
        if (value->has_value()) co_return Found{.slot = slot, .value = **value};
      }
    }
  }
  co_return std::nullopt;
}

}  // namespace farside::index::shard
