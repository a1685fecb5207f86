// Checking the whole table while no client changes it.
#include <fmt/format.h>

#include <string>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/nessie/walker.h"

namespace farside::index::nessie {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

Error Broken(const Partition& part, uint64_t slot, std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("slot {} of node {} {}; run farside fsck", slot,
                                                fabric::Index(part.node()), what));
}

}  // namespace

Task<Done> Walker::Verify(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  for (size_t i = 0; i < partitions_.size(); ++i) {
    co_await partitions_[i].Refresh(op);
    co_await VerifyPartition(op, partitions_[i]);
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Walker::VerifyPartition(Op& op, Partition& part) {
  const uint64_t slots = part.shape().slots(part.directory().newest);
  Range range;
  for (uint64_t slot = 0; slot < slots;) {
    Counts counts;
    const uint64_t first = slot;
    slot += co_await ReadRange(op, part, slot, slots, range, &counts);
    if (!part.shape().HasParent(first) && counts.unsplit != 0)
      co_return Broken(part, first, "or one behind it was never written");
    for (const auto& used : range.used) co_await VerifySlot(op, part, *used);
  }
  co_return Done{};
}

Task<Done> Walker::VerifySlot(Op& op, Partition& part, const Used& used) {
  const Item& item = used.item;
  const bool has_key = !item.key.empty() || !used.word.is(Kind::kPending);  // a tombstone may have none
  if ((has_key && Hash64(AsBytes(item.key)) != item.hash) || used.word.tag() != KeyHash(item.hash).tag())
    co_return Broken(part, used.slot, "has an item whose hash or tag is not that of its key");
  Look look;
  co_await ReadLook(op, part, KeyHash(item.hash), look);
  const bool in_primary = look.of(Candidate::kPrimary).Find(used.slot).has_value();
  const bool in_secondary = look.of(Candidate::kSecondary).Find(used.slot).has_value();
  if (!in_primary && !in_secondary)
    co_return Broken(part, used.slot,
                     fmt::format("has the key \"{}\", which does not belong there", Escape(item.key)));
  const Candidate candidate = in_primary ? Candidate::kPrimary : Candidate::kSecondary;
  if (!part.MaySplit(used.slot)) co_return Broken(part, used.slot, "is in use before its table has grown");
  // What was left behind by the split of the slot does not count.
  if (look.of(candidate).effective_step().slot != used.slot) co_return Done{};
  if (used.word.is(Kind::kLive)) co_await VerifyCopies(op, part, used, look.word(Other(candidate)));
  co_return Done{};
}

// INVARIANT nessie/2: two live items of a key are copies of one value, and tell which is the source.
Task<Done> Walker::VerifyCopies(Op& op, Partition& part, const Used& used, Word other) {
  if (!other.is(Kind::kLive) || other.tag() != used.word.tag()) co_return Done{};
  ItemRead read(other);
  const Item item = co_await ReadItem(op, part.node(), read);
  if (item.key != used.item.key) co_return Done{};
  if (item.value != used.item.value || item.moves == used.item.moves)
    co_return Broken(part, used.slot,
                     fmt::format("and another one have the key \"{}\", and are no copies", Escape(item.key)));
  co_return Done{};
}

}  // namespace farside::index::nessie
