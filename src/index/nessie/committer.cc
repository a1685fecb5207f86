#include "index/nessie/committer.h"

#include "fabric/ends_client.h"
#include "index/kit/retry_policy.h"
#include "index/nessie/errors.h"
#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Cas;
using fabric::Order;
using fabric::Read;

namespace {

// Looks at another writer's entry while this one's stands, before it is taken back and the change waits
// without it.
constexpr int kMostWaits = 24;
// Words of a trail that a trip looks at behind a pending entry. Longer trails are shortened first.
constexpr size_t kMostSteps = kMostTrailOfChange;

}  // namespace

// INVARIANT nessie/3: CAS, READ keep their order, so the look is behind the entry.
Task<bool> Committer::Place(ChangeContext& context, OwnEntry own, fabric::AtomicVerb cas, Look& look) {
  Partition& part = context.part;
  Trail& trail = look.of(own.candidate);
  Trail& other = look.of(Other(own.candidate));
  fabric::SmallBatch<2 * kMostSteps + 2> batch(context.op, Order::kInOrder);
  batch.Add(context.item.Write());
  const bool by_write = context.change.kind == ChangeKind::kTouch && Mutant(kTouchByWrite);
  if (by_write) cas = fabric::MaskedCas(cas.verb.at, 0, 0, 0, own.pending.word(), ~uint64_t{0});
  const size_t swap = batch.Add(cas);
  for (size_t i = 0; i < own.step; ++i)
    batch.Add(Read(part.SlotAt(trail.step(i).slot), BytesOf(trail.step(i).word)));
  for (size_t i = 0; i < other.read(); ++i)
    batch.Add(Read(part.SlotAt(other.step(i).slot), BytesOf(other.step(i).word)));
  context.Publish();
  context.running.emplace(cleaner_.running(), part, own.pending);
  co_await batch;
  const Word old(batch.Old(swap));
  trail.step(own.step).word = old;
  // A masked CAS compares the kind alone (nessie/7).
  const bool done =
      by_write ||
      (cas.verb.kind == fabric::VerbKind::kMaskedCas ? old.is(Kind::kEmpty) : old == Word(cas.verb.expect));
  if (!done) context.NotPublished();
  co_return done;
}

Task<bool> Committer::Conclude(ChangeContext& context, OwnEntry own, Look& look) {
  const Result<bool> outcome = co_await ConcludeOrFail(context, own, look).Outcome();
  if (outcome.ok()) co_return *outcome;
  if (!fabric::EndsClient(outcome.error()))
    co_await TakeBack(context.access(), own, look.of(own.candidate).step(own.step).slot, false);
  co_return outcome.error();
}

Task<bool> Committer::ConcludeOrFail(ChangeContext& context, OwnEntry own, Look& look) {
  const Access at = context.access();
  const uint64_t slot = look.of(own.candidate).step(own.step).slot;
  Trail& other = look.of(Other(own.candidate));
  if (!other.is_settled()) co_await FinishLooks(context.op, context.part, &look);
  const Nanos began = pool_.client().Now();
  int waits = 0;
  while (true) {
    const Verdict verdict = co_await Decide(context, own, look);
    switch (verdict) {
      case Verdict::kAgain: break;
      case Verdict::kCommit: {
        const bool committed = co_await Commit(context, own, slot);
        co_return committed;
      }
      case Verdict::kGiveWay:
      case Verdict::kMoved: co_await TakeBack(at, own, slot, verdict == Verdict::kMoved); co_return false;
      case Verdict::kWait:
        if (++waits > kMostWaits) co_return AwaitsWriter();
        context.op.CountRetry();
        co_await context.op.Pause(RetryPolicy::PauseAfter(pool_.client().Now() - began, backoff_));
        co_await ReadAgain(at, other);
        break;
    }
  }
}

Task<Committer::Verdict> Committer::Decide(ChangeContext& context, const OwnEntry& own, Look& look) {
  const Access at = context.access();
  Trail& trail = look.of(own.candidate);
  Trail& other = look.of(Other(own.candidate));
  if (!Mutant(kOwnTrailNotLookedAt)) {
    co_await RemoveMarks(at, trail, own.step);
    for (size_t i = 0; i < own.step; ++i) {
      if (trail.step(i).word.is_effective()) co_return Verdict::kMoved;
    }
  }
  co_await RemoveMarks(at, other, other.effective());
  Trail::Step& step = other.step(other.effective());
  if (step.word.is_damaged()) co_return BrokenWord(at.part, step.slot);
  const Word word = step.word;
  if (!word.has_item() || word.tag() != context.key_hash.tag()) co_return Verdict::kCommit;
  if (word.is(Kind::kClaim)) {
    if (Mutant(kClaimLeft)) co_return Verdict::kCommit;
    const Swapped removed = co_await cleaner_.RemoveClaim(at, step.slot, word);
    step.word = removed.now;
    co_return Verdict::kAgain;
  }
  ItemRead read(word);
  const Item item = co_await ReadItem(at.op, at.node(), read);
  if (!item.IsOf(context.key, context.hash, word.is(Kind::kPending))) co_return Verdict::kCommit;
  Verdict verdict;
  if (word.is(Kind::kLive)) {
    verdict = co_await DecideByLive(at, own, other, item);
  } else {
    verdict = co_await DecideByPending(context, own, other, item);
  }
  co_return verdict;
}

// A client that splits a slot of the key has read the trail before the entry stood there: it must not go on
// (nessie/8).
Task<Done> Committer::RemoveMarks(const Access& at, Trail& trail, size_t end) {
  if (Mutant(kMarkLeft)) co_return Done{};
  for (size_t i = 0; i < end; ++i) {
    Trail::Step& step = trail.step(i);
    while (step.word.is(Kind::kSplitting)) {
      const Swapped unmarked = co_await cleaner_.Unmark(at, step.slot, step.word);
      step.word = unmarked.now;
    }
  }
  co_return Done{};
}

// INVARIANT nessie/2.
Task<Committer::Verdict> Committer::DecideByLive(const Access& at, const OwnEntry& own, Trail& trail,
                                                 const Item& item) {
  if (own.is_fresh()) co_return Mutant(kFreshBesideLive) ? Verdict::kCommit : Verdict::kGiveWay;
  const bool other_is_copy = item.moves > own.moves;
  if (other_is_copy) co_return Verdict::kMoved;
  Trail::Step& step = trail.step(trail.effective());
  const Swapped cleared = co_await cleaner_.ClearSource(at, step.slot, step.word, item.bytes);
  step.word = cleared.now;
  // A client may have marked a child of the slot when the source still stood there: look again, behind the
  // CAS (nessie/8).
  if (trail.effective() > 0 && !Mutant(kMarkLeft)) co_await ReadAgain(at, trail);
  co_return Verdict::kAgain;
}

Task<Committer::Verdict> Committer::DecideByPending(ChangeContext& context, const OwnEntry& own, Trail& trail,
                                                    const Item& item) {
  const Access at = context.access();
  const Trail::Step& step = trail.step(trail.effective());
  const bool gone = co_await cleaner_.IsGone(at, item.owner, step.word);
  if (gone) {
    co_await cleaner_.RollBack(at, step.slot, step.word, item);
    co_await ReadAgain(at, trail);
    co_return Verdict::kAgain;
  }
  const bool other_is_fresh = !item.replaced.is(Kind::kLive);
  if (own.is_fresh()) {
    if (!other_is_fresh) co_return Verdict::kGiveWay;
    if (Mutant(kBothFreshGoOn)) co_return Verdict::kCommit;
    // INVARIANT nessie/4.
    co_return own.candidate == Candidate::kSecondary ? Verdict::kGiveWay : Verdict::kWait;
  }
  if (other_is_fresh) co_return Verdict::kCommit;
  ItemRead previous(item.replaced);
  const Item before = co_await ReadItem(at.op, at.node(), previous);
  // A tombstone without a key was told by its hash alone.
  if (before.key != context.key) co_return Verdict::kCommit;
  co_return before.moves > own.moves ? Verdict::kMoved : Verdict::kWait;
}

Task<Done> Committer::ReadAgain(const Access& at, Trail& trail) {
  fabric::SmallBatch<kMostVersion> batch(at.op, Order::kTogether);
  for (size_t i = 0; i < trail.read(); ++i)
    batch.Add(Read(at.part.SlotAt(trail.step(i).slot), BytesOf(trail.step(i).word)));
  co_await batch;
  co_return Done{};
}

Task<bool> Committer::Commit(ChangeContext& context, const OwnEntry& own, uint64_t slot) {
  const Access at = context.access();
  const Word to = own.removes ? cleaner_.NewToken(at.part, Kind::kEmpty) : own.pending.As(Kind::kLive);
  const uint64_t old = co_await at.op.InOrder(Cas(at.part.SlotAt(slot), own.pending.word(), to.word()));
  if (old != own.pending.word()) {
    if (Mutant(kTakenBackUnfenced) || Mutant(kLiveEntryFinished)) co_return false;
    if (!Mutant(kFailedCommitIgnored)) co_return TakenForDead();
  }
  // INVARIANT nessie/10.
  const bool frees_at_once = context.change.kind == ChangeKind::kTouch && Mutant(kTouchFreesAtOnce);
  if (frees_at_once) pool_.allocator(at.node()).FreeUnpublished(context.change.victim, own.bytes);
  if (!own.is_fresh() && !frees_at_once) cleaner_.Retire(at, own.replaced, own.bytes);
  if (own.removes) cleaner_.Retire(at, own.pending, own.own_bytes);
  co_return true;
}

Task<Done> Committer::TakeBack(const Access& at, const OwnEntry& own, uint64_t slot, bool moved) {
  const bool restores = !own.is_fresh() && !moved;
  const Word to = restores ? own.replaced : cleaner_.NewToken(at.part, Kind::kEmpty);
  const uint64_t old = co_await at.op.InOrder(Cas(at.part.SlotAt(slot), own.pending.word(), to.word()));
  if (old != own.pending.word()) {
    if (Mutant(kTakenBackUnfenced) || Mutant(kLiveEntryFinished)) co_return Done{};
    co_return TakenForDead();
  }
  cleaner_.Retire(at, own.pending, own.own_bytes);
  if (!own.is_fresh() && moved) cleaner_.Retire(at, own.replaced, own.bytes);
  co_return Done{};
}

}  // namespace farside::index::nessie
