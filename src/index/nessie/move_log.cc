#include "index/nessie/move_log.h"

#include <span>
#include <utility>

#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Op;
using fabric::Read;

Task<uint64_t> CountMoves(Op& op, const Partition& part) {
  const uint64_t moves = co_await op.InOrder(Read<uint64_t>(part.MovesAt()));
  co_return moves;
}

// Move n has number n + 1 in its entry, so that an entry which was never written is none.
Task<MovedKeys> ReadMoves(Op& op, const Partition& part, uint64_t since, uint64_t count) {
  MovedKeys moved{.is_complete = true, .next = since};
  if (count == since || Mutant(kMovesNotRead)) co_return std::move(moved);
  std::vector<LogEntry> entries(kLogEntries);
  co_await op.InOrder(Read(part.LogAt(0), std::as_writable_bytes(std::span(entries))));
  moved.is_complete = count - since <= kLogEntries;
  bool all_written = true;
  for (uint64_t move = moved.is_complete ? since : count; move < count; ++move) {
    const LogEntry& entry = entries[move % kLogEntries];
    // A later move may have taken the place since the count was read.
    if (entry.number > move + 1) moved.is_complete = false;
    const bool is_written = entry.number == move + 1;
    if (is_written) moved.hashes.push_back(entry.hash);
    all_written = all_written && is_written;
    if (all_written) moved.next = move + 1;
  }
  if (!moved.is_complete) moved.next = count;
  co_return std::move(moved);
}

}  // namespace farside::index::nessie
