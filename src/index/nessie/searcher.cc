#include "index/nessie/searcher.h"

#include "index/nessie/errors.h"
#include "index/nessie/find_key.h"
#include "index/nessie/mutants.h"
#include "index/nessie/trail.h"

namespace farside::index::nessie {
namespace {

// Each further one means that another client has changed one of the two words.
constexpr int kMostLooks = 16;

// Of the entry of a key that is pending: the item before it.
Task<bool> ReadPrevious(SearchContext& context, const Entry& entry) {
  ItemRead previous(entry.item.replaced);
  const Item item = co_await ReadItem(context.op, context.node, previous);
  if (item.key != context.key) co_return false;
  context.value.assign(item.value);
  co_return true;
}

// For the mutant that reads one slot after the other.
Task<bool> SearchInTurn(SearchContext& context, Look look) {
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
    if (candidate == Candidate::kSecondary)
      co_await ReadLook(context.op, context.part, context.key_hash, look);
    Entries entries;
    co_await entries.Find(context.op, context.part, context.key_hash, context.key, look);
    const Entry& entry = entries.of(candidate);
    if (entry.is_live()) context.value.assign(entry.item.value);
    if (entry.is_live()) co_return true;
    bool found = false;
    if (entry.contributes()) found = co_await ReadPrevious(context, entry);
    if (found) co_return true;
  }
  co_return false;
}

}  // namespace

Task<bool> SearchKey(SearchContext& context) {
  Partition& part = context.part;
  part.CountOperation();
  if (part.IsBehind()) co_await part.CatchUp(context.op);
  Look look;
  co_await ReadLook(context.op, part, context.key_hash, look);  // trip 1
  if (Mutant(kSlotsReadInTurn)) {
    const bool found = co_await SearchInTurn(context, look);
    co_return found;
  }
  for (int i = 0; i < kMostLooks; ++i) {
    Entries entries;
    co_await entries.Find(context.op, part, context.key_hash, context.key, look);  // trip 2
    for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
      const Entry& entry = entries.of(candidate);
      if (!entry.is_live()) continue;
      context.value.assign(entry.item.value);
      co_return true;
    }
    for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
      const Entry& entry = entries.of(candidate);
      if (entry.is_pending() && Mutant(kPendingHides)) co_return false;
      bool found = false;
      if (entry.contributes()) found = co_await ReadPrevious(context, entry);  // trip 3
      if (found) co_return true;
    }
    if (Mutant(kMissAtOnce)) co_return false;
    Look again;
    co_await ReadLookAgain(context.op, part, look, again);
    if (SameWords(look, again)) co_return false;
    context.op.CountRetry();
    look = again;
  }
  co_return Unsettled();
}

}  // namespace farside::index::nessie
