#include "index/shard/find_key.h"

#include "index/shard/bucket_finder.h"
#include "index/shard/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Read;

Task<std::optional<Found>> FindKey(const KeyAccess& at, const View& view, BlockBuffer& buffer) {
  std::optional<Found> found = co_await FindInBucket(at, view.bucket, buffer);
  if (!found.has_value() && view.bucket.overflow()) found = co_await FindInOverflows(at, view, buffer);
  co_return found;
}

Task<std::optional<Found>> FindInBucket(const KeyAccess& at, const Bucket& bucket, BlockBuffer& buffer) {
  BucketFinder finder(at, bucket, buffer);
  while (finder.needs_block()) {
    co_await at.op.InOrder(finder.BlockRead());
    const Status taken = finder.TakeBlock();
    if (!taken.ok()) co_return taken.error();
  }
  co_return finder.result();
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
        const Result<pool::BlockView> block = pool::DecodeBlock(buffer.bytes());
        if (!block.ok()) co_return block.error();
        if (IsOf(*block, at.key)) co_return Found{.slot = slot, .value = block->value};
      }
    }
  }
  co_return std::nullopt;
}

Task<std::optional<Found>> FindAgain(const KeyAccess& at, Location known, BlockBuffer& buffer) {
  Line line;
  const auto read_line = Read(known.line_at(), BytesOf(line));
  const auto read_block = ForBlock(Read(known.block_at(), buffer.Resize(known.slot.entry.bytes())));
  if (Mutant(kCacheBlockFirst)) {
    co_await at.op.InOrder(read_block, read_line);
  } else {
    co_await at.op.InOrder(read_line, read_block);
  }
  if (!known.IsIn(line)) {
    const Entry now = known.EntryIn(line);
    if (line.version() != known.slot.version || !MayBeOf(now, known.slot.entry.tag())) co_return std::nullopt;
    known.slot.entry = now;
    co_await at.op.InOrder(ForBlock(Read(known.block_at(), buffer.Resize(now.bytes()))));
  }
  const Result<pool::BlockView> block = pool::DecodeBlock(buffer.bytes());
  if (!block.ok()) co_return block.error();
  if (!IsOf(*block, at.key)) co_return std::nullopt;
  known.slot.entry = known.EntryIn(line);
  co_return Found{.slot = known.slot, .value = block->value};
}

}  // namespace farside::index::shard
