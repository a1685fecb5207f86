// Checking the whole table while no client changes it.
#include <fmt/format.h>

#include <string>

#include "base/bytes.h"
#include "index/kit/block_buffer.h"
#include "index/shard/find_key.h"
#include "index/shard/walker.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

Task<Done> Walker::Verify(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  for (size_t i = 0; i < partitions_.size(); ++i) {
    const Access at{op, partitions_[i]};
    co_await at.part.Refresh(op);
    for (uint64_t unit = 0; unit < at.shape().units(at.directory().version); ++unit)
      co_await VerifyUnit(at, unit);
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Walker::VerifyUnit(Access at, uint64_t unit) {
  const Shape& shape = at.shape();
  RawUnit raw;
  co_await ReadRaw(at, unit, raw);
  const auto broken = [&](std::string_view what) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("unit {} of node {} {}", unit, fabric::Index(at.part.node()), what));
  };
  const uint32_t version = at.directory().version;
  if (raw.bucket.version > version || raw.overflow.version > version)
    co_return broken("is newer than its table");
  if (raw.bucket.version != raw.overflow.version)
    co_return broken("is split in one level and not in the other");
  if (unit < shape.units(1) && raw.bucket.version == 0) co_return broken("was never written");
  // INVARIANT shard/1: nothing is used behind an unused slot, nor in slots that are none.
  bool unused = false;
  for (size_t slot = 0; slot < shape.lines() * kSlotsPerLine; ++slot) {
    const Entry entry = raw.bucket.entry(slot);
    if (!entry.empty() && (unused || slot >= shape.slots))
      co_return broken("has an entry behind an unused slot");
    unused |= entry.empty();
    if (!entry.empty() && raw.bucket.version == 0) co_return broken("has entries and no version");
  }
  for (const bool level1 : {true, false}) {
    const std::vector<Slot> slots = SlotsOf(at, raw, level1);
    for (const Slot& slot : slots) co_await VerifySlot(at, slot);
  }
  co_return Done{};
}

// The block is whole, and a search of its key finds this very slot (shard/1, shard/4).
Task<Done> Walker::VerifySlot(Access at, Slot slot) {
  BlockBuffer block;
  co_await ReadBlock(at.op, FarAddr(at.part.node(), slot.entry.offset()), slot.entry.bytes(), block);
  const Result<pool::BlockView> content = pool::DecodeBlock(block.bytes());
  if (!content.ok()) co_return content.error();
  const std::string key(content->key);
  const KeyAccess key_at(at.op, at.part, KeyHash(content->hash), key);
  const bool placed = &partitions_.Of(key_at.hash) == &at.part;
  View view;
  co_await views_.ReadView(key_at, view);
  if (view.bucket.overflow()) co_await views_.EnsureOverflows(key_at, view);
  const std::optional<Found> found = co_await FindKey(key_at, view, block);
  if (placed && found.has_value() && found->slot.at == slot.at) co_return Done{};
  const std::string_view what = !placed             ? "belongs to another node"
                                : found.has_value() ? "stands twice"
                                                    : "stands where no search looks for it";
  co_return Error(ErrorCode::kCorrupt,
                  fmt::format("the key \"{}\" {}: in level {} of unit {} (version {}); its bucket is unit {} "
                              "(version {}, overflow {})",
                              Escape(key), what, slot.candidate == Candidate::kLevel1 ? 1 : 2, slot.unit,
                              slot.version, view.bucket.unit, view.bucket.version, view.bucket.overflow()));
}

}  // namespace farside::index::shard
