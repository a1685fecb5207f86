// Memory for merges: the part of Merger that knows what to do in a full pool.
//
// Deletes make room, so they must not need any; but a merge writes a new MainSegment before it retires the
// old one. So a table has two spare ones on each node. A client that deletes takes one of them if there is no
// other memory, by a CAS of its word in the root; and a MainSegment of that size that a merge has replaced
// becomes a spare again, if one is missing. So merges of one segment take turns with them while the pool is
// full, whichever clients merge: no client has to own memory.
#include <array>
#include <optional>

#include "index/sephash/main_room.h"
#include "index/sephash/merger.h"
#include "index/sephash/mutants.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Read;
using Spares = std::array<SpareWord, Root::kSpares>;

namespace {

FarAddr SpareAt(const Access& at, size_t spare) {
  return at.directory.root() + offsetof(Root, spares) + spare * sizeof(SpareWord);
}

}  // namespace

Task<Done> Merger::FetchRoom(Plan& plan, uint64_t words, MainRoom& room) {
  const uint64_t pages = plan.at.shape().PagesOf(words);
  if (pages > MetaWord::MainPages::kMax)
    co_return Error(ErrorCode::kOutOfMemory, "too many keys have the same hash; use other keys");
  const Result<Done> fetched =
      co_await room.Fetch(plan.at.op, pool_.allocator(plan.at.node()), pages).Outcome();
  if (fetched.ok()) co_return Done{};
  // One that is a spare itself goes back, so that there are as many as before.
  const bool is_spare = plan.retired_pages.size() == Shape::kUsualPages;
  const bool may_take = (plan.frees || is_spare) && pages <= Shape::kUsualPages;
  if (fetched.error().code() != ErrorCode::kOutOfMemory || !may_take) co_return fetched.error();
  const bool taken = co_await TakeSpare(plan, room);
  if (!taken) co_return fetched.error();
  co_return Done{};
}

// INVARIANT sephash/3, of spares: one that was in use is written only when no client can still read it. The
// root names it until it is clear what became of the merge: a walk marks it there, or as the MainSegment of a
// segment, or both.
Task<bool> Merger::TakeSpare(Plan& plan, MainRoom& room) {
  const Access& at = plan.at;
  const Spares spares = co_await at.op.InOrder(Read<Spares>(SpareAt(at, 0)));
  const pool::RegistryView others = co_await pool_.member(at.node()).LookAround(at.op);
  for (size_t i = 0; i < spares.size(); ++i) {
    const SpareWord spare = spares[i];
    const bool is_free = spare.IsFree(others.safe_epoch) || Mutant(kSpareWithoutGrace);
    if (spare.offset() == 0 || spare.is_taken() || !is_free) continue;
    const FarAddr spare_at(at.node(), spare.offset());
    const MainHead head = co_await reader_.ReadSpare(at.op, spare_at);
    const uint64_t found = co_await at.op.InOrder(Cas(SpareAt(at, i), spare.word(), spare.Taken().word()));
    if (found != spare.word() && !Mutant(kSpareTakenTwice)) continue;
    plan.spare = TakenSpare{.index = i, .word = spare};
    room.Adopt(spare_at, head.pages);
    co_return true;
  }
  co_return false;
}

// The merge has taken a spare. If this client dies before this, the word stays as it is; the merge that
// replaces the MainSegment makes a spare of it.
Task<Done> Merger::SettleSpare(const Plan& plan, bool committed) {
  if (!plan.spare.has_value()) co_return Done{};
  const SpareWord taken = plan.spare->word.Taken();
  const uint64_t after = committed ? 0 : plan.spare->word.word();
  co_await plan.at.op.InOrder(Cas(SpareAt(plan.at, plan.spare->index), taken.word(), after));
  co_return Done{};
}

// True: the MainSegment that the merge has replaced is a spare now: where the root names it as taken, or else
// where there is none. If this operation is destroyed meanwhile, a sweep finds it.
Task<bool> Merger::KeepAsSpare(const Plan& plan) {
  const Access& at = plan.at;
  if (plan.retired_pages.size() != Shape::kUsualPages) co_return false;
  const uint64_t main = plan.look.meta().main();
  const Spares spares = co_await at.op.InOrder(Read<Spares>(SpareAt(at, 0)));
  std::optional<size_t> place;
  for (size_t i = 0; i < spares.size(); ++i) {
    if (spares[i].offset() == main || (spares[i].offset() == 0 && !place.has_value())) place = i;
  }
  if (!place.has_value()) co_return false;
  co_await pool_.Sync(at.op, /*raise=*/true);
  const SpareWord spare = SpareWord::Unlinked(main, pool_.member(at.node()).known_epoch());
  uint64_t expected = spares[*place].word();
  uint64_t found = co_await at.op.InOrder(Cas(SpareAt(at, *place), expected, spare.word()));
  if (found != expected && found == 0) {
    // The client that had taken it has just said so.
    expected = 0;
    found = co_await at.op.InOrder(Cas(SpareAt(at, *place), expected, spare.word()));
  }
  co_return found == expected;
}

}  // namespace farside::index::sephash
