// Checking the whole table while no client changes it.
#include <fmt/format.h>

#include <set>
#include <string>

#include "base/bytes.h"
#include "index/kit/block_buffer.h"
#include "index/sephash/errors.h"
#include "index/sephash/walker.h"
#include "pool/memory/block.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Read;

Task<Done> Walker::Verify(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  for (size_t i = 0; i < directories_.size(); ++i) {
    const Access at{op, directories_[i]};
    co_await VerifyDirectory(at);
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// Every segment is met once, and covers the suffix by which it was met.
Task<Done> Walker::VerifyDirectory(Access at) {
  if (!at.directory.known()) co_await at.directory.Load(at.op);
  std::set<uint64_t> met;
  std::optional<uint64_t> suffix = 0;
  while (suffix.has_value()) {
    Whole whole;
    co_await ReadWhole(at, *suffix, whole);
    if (!met.insert(whole.segment->at.offset).second)
      co_return DamagedSegment(whole.segment->at, "stands twice in the directory");
    co_await VerifySegment(at, whole);
    suffix = NextSuffix(*suffix, whole.look.depth());
  }
  co_return Done{};
}

Task<Done> Walker::VerifySegment(Access at, const Whole& whole) {
  const Segment& segment = *whole.segment;
  const Look& look = whole.look;
  // INVARIANT sephash/2: no entry of the round stands behind a free slot.
  for (uint32_t slot = look.Used(); slot < look.sampled; ++slot) {
    const Entry entry = look.image.entries[slot];
    if (entry.epoch() == look.epoch() && !entry.is_padding())
      co_return DamagedSegment(segment.at, "has an entry behind a free slot");
  }
  // INVARIANT sephash/6: the filter has the fingerprint of every entry of the round.
  const FarAddr main = SegmentReader::MainOf(segment, look.meta());
  for (uint32_t slot = 0; slot < look.Used(); ++slot) {
    const Entry entry = look.image.entries[slot];
    if (entry.is_padding()) continue;
    const uint8_t byte = co_await at.op.InOrder(Read<uint8_t>(main + FilterByteOffset(entry.fp())));
    if (byte == 0) co_return DamagedSegment(segment.at, "has an entry that the filter does not know of");
  }
  co_await VerifyEntries(at, whole);
  co_return Done{};
}

// Every block is whole, its key belongs here, and no other entry has the same key.
Task<Done> Walker::VerifyEntries(Access at, const Whole& whole) {
  std::set<std::string> keys;
  for (const Entry& entry : whole.merged.entries) {
    BlockBuffer block;
    co_await ReadBlock(at.op, FarAddr(at.node(), entry.offset()), entry.bytes(), block);
    const Result<pool::BlockView> view = pool::DecodeBlock(block.bytes());
    if (!view.ok()) co_return view.error();
    std::string_view what;
    if (&directories_.Of(view->hash) != &at.directory) what = "belongs to another node";
    if (!whole.look.Covers(view->hash)) what = "belongs to another segment";
    const Tag tag = TagOf(view->hash, at.shape(), whole.look.depth());
    if (entry.tag() != tag && entry.tag() != TagBefore(tag, view->hash, at.shape(), whole.look.depth()))
      what = "stands where no search looks";
    if (!keys.insert(std::string(view->key)).second) what = "stands twice";
    if (what.empty()) continue;
    co_return Error(ErrorCode::kCorrupt,
                    fmt::format("the key \"{}\" {}: in the segment with suffix {:#x} of depth {}",
                                Escape(view->key), what, whole.segment->suffix, whole.look.depth()));
  }
  co_return Done{};
}

}  // namespace farside::index::sephash
