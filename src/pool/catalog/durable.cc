// What a catalog makes durable, in a durable pool; see region/recover.h.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/bytes.h"
#include "pool/catalog/catalog.h"
#include "pool/durability.h"
#include "pool/mutants.h"

namespace farside::pool {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::WriteObject;

bool Catalog::durable() const {
  return member_.geometry().durable && !member_.self().is_none() && !member_.client().read_only();
}

// INVARIANT durable/3, durable/4: nothing follows from an entry before its word is durable. The client that
// changed it may have died before that, or be about to see to it.
Task<Done> Catalog::MakeEntriesDurable(Op& op, const Entries& entries) {
  if (Mutant(kActOnLost)) co_return Done{};
  std::vector<ByteRange> ranges;
  for (uint32_t slot = 0; slot < entries.size(); ++slot) {
    const TableState state = entries[slot].state.state();
    if (state != TableState::kLive && state != TableState::kDropping) continue;
    if (state == TableState::kDropping && Mutant(kActOnLostDrop)) continue;
    const uint64_t at = member_.geometry().table_entry(slot);
    const bool follows = !ranges.empty() && ranges.back().offset + ranges.back().size == at;
    if (!follows) ranges.push_back({at, 0});
    ranges.back().size += sizeof(TableEntry);
  }
  co_await MakeDurable(op, member_.node(), std::move(ranges));
  co_return Done{};
}

Task<Done> Catalog::MakeStateDurable(Op& op, FarAddr entry) {
  std::vector<ByteRange> ranges(1);
  ranges[0] = {entry.offset, sizeof(TableWord)};
  co_await MakeDurable(op, entry.node, std::move(ranges));
  co_return Done{};
}

// INVARIANT durable/3: the roots are durable already, so the entry is complete after a power cut if it says
// kLive; and it says so from before its creator does.
Task<bool> Catalog::MakeLiveDurably(Op& op, const TableInfo& table, TableWord claimed,
                                    const TableBody& body) {
  std::vector<ByteRange> ranges(1);
  ranges[0] = {table.entry.offset, sizeof(TableEntry)};
  co_await op.InOrder(ForMaintenance(WriteObject(table.entry + kBodyOffset, body)));
  if (!Mutant(kBodyNotDurable)) co_await MakeDurable(op, table.entry.node, std::move(ranges));
  const TableWord live = claimed.With(TableState::kLive);
  const uint64_t old = co_await op.InOrder(ForMaintenance(Cas(table.entry, claimed.word(), live.word())));
  if (old != claimed.word()) co_return false;
  if (!Mutant(kLiveNotDurable)) {
    const Result<Done> made = co_await MakeStateDurable(op, table.entry).Outcome();
    // A code that promises that nothing was changed would be wrong here.
    if (!made.ok()) {
      co_return Error(ErrorCode::kOutcomeUnknown,
                      fmt::format("the table \"{}\" is there, but may not survive a power cut: {}",
                                  Escape(table.name), made.error().message()));
    }
  }
  // The table is there; clients that watch the catalog learn of it later if this is lost.
  Result<Done> announced = co_await Announce(op).Outcome();
  co_return true;
}

// INVARIANT durable/7: a living client may have put a root on a node that was opened anew since, and will say
// in this entry where it is. A client that puts one there now is a client of the node as it is now, and owns
// the chunk itself.
Task<bool> Catalog::IsBeingMade(Op& op, TableEntry entry) {
  const bool has_other_nodes = op.client().region_bytes().size() > 1;
  if (!member_.geometry().durable || !has_other_nodes || Mutant(kSweepUnderCreator)) co_return false;
  const Standing worker =
      co_await member_.StandingOf(op, Owner::FromBits(static_cast<uint32_t>(entry.worker)));
  co_return worker == Standing::kAlive;
}

}  // namespace farside::pool
