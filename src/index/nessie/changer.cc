#include "index/nessie/changer.h"

#include <optional>

#include "index/nessie/errors.h"
#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Cas;
using fabric::MaskedCas;

namespace {

// A table with so many slots, and with more than so many of them for each record, does not grow for a key
// without a place: keys that fill a chain there have hashes that growth does not tell apart.
constexpr uint64_t kManySlots = 1 << 16;
constexpr uint64_t kManySlotsPerRecord = 64;

}  // namespace

// A put of a new key makes two trips, unless its primary slot is taken:
//   1. WRITE the item, CAS the primary slot from any empty word to pending, READ the secondary slot
//   2. CAS pending to live
// Every other change looks first: both slots, and the items there whose tag is the key's.
Task<Attempt> Changer::TryChange(ChangeContext& context) {
  Partition& part = context.part;
  part.CountOperation();
  if (part.IsBehind()) co_await part.CatchUp(context.op);
  if (spares_.has_lines()) spares_.GiveBack(context.access());
  Look look;
  if (GoesBlind(context)) {
    OwnEntry own;
    const bool placed = co_await PutBlind(context, look, own);
    if (placed) {
      const Attempt concluded = co_await Conclude(context, look, own, Decision{.applied = true});
      co_return concluded;
    }
    if (!look.is_settled()) {
      co_await FinishLooks(context.op, part, &look);
      part.NoteUnsplit(true);
    }
  } else {
    co_await ReadLook(context.op, part, context.key_hash, look);
  }
  const Attempt attempt = co_await ChangeByLook(context, look);
  co_return attempt;
}

bool Changer::GoesBlind(const ChangeContext& context) const {
  if (context.attempt != 0 || context.part.ExpectsUnsplit()) return false;
  if (context.change.kind == ChangeKind::kInsert) return true;
  return context.change.kind == ChangeKind::kPut && inserts_.Expects();
}

// INVARIANT nessie/7: nothing was concluded from the slot before the masked CAS, so any empty word will do.
Task<bool> Changer::PutBlind(ChangeContext& context, Look& look, OwnEntry& own) {
  Partition& part = context.part;
  BeginLook(part, context.key_hash, look);
  const Decision decision{.applied = true};
  co_await Draft(context, decision, Word::FirstEmpty());
  own.candidate = Candidate::kPrimary;
  own.pending = context.item.WordAs(Kind::kPending, context.key_hash.tag());
  own.own_bytes = context.item.bytes();
  look.of(Candidate::kPrimary).set_read(1);
  look.of(Candidate::kSecondary).set_read(1);
  const uint64_t empty = Word::FirstEmpty().word();
  const fabric::AtomicVerb cas = MaskedCas(part.SlotAt(look.of(Candidate::kPrimary).step(0).slot), empty,
                                           empty, Word::KindBits::kMask, own.pending.word(), ~uint64_t{0});
  const bool placed = co_await committer_.Place(context, own, cas, look);
  co_return placed;
}

Task<Attempt> Changer::ChangeByLook(ChangeContext& context, Look& look) {
  const Access at = context.access();
  Entries entries;
  co_await entries.Find(context.op, context.part, context.key_hash, context.key, look);
  const Entry& primary = entries.of(Candidate::kPrimary);
  const Entry& secondary = entries.of(Candidate::kSecondary);
  if (primary.is_pending() || secondary.is_pending()) {
    co_await AwaitWriter(at, look, entries);
    co_return Attempt::kRetry;
  }
  if (primary.is_live() && secondary.is_live()) {
    co_await splitter_.ResolveCopies(at, look, primary.item.moves, secondary.item.moves);
    co_return Attempt::kRetry;
  }
  Attempt attempt;
  if (primary.is_live() || secondary.is_live()) {
    attempt = co_await ChangePresent(context, look, entries);
  } else {
    attempt = co_await ChangeAbsent(context, look);
  }
  co_return attempt;
}

// A pending entry of the key: its writer ends soon, or is gone. kContended: later.
Task<Done> Changer::AwaitWriter(const Access& at, const Look& look, const Entries& entries) {
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
    const Entry& entry = entries.of(candidate);
    if (!entry.is_pending()) continue;
    bool gone = co_await cleaner_.IsGone(at, entry.item.owner, entry.word);
    if (Mutant(kLiveEntryHelped) || Mutant(kLiveEntryFinished)) gone = true;
    if (!gone) co_return AwaitsWriter();
    co_await cleaner_.RollBack(at, look.of(candidate).effective_step().slot, entry.word, entry.item);
  }
  co_return Done{};
}

Task<Attempt> Changer::ChangePresent(ChangeContext& context, Look& look, const Entries& entries) {
  const Candidate candidate =
      entries.of(Candidate::kPrimary).is_live() ? Candidate::kPrimary : Candidate::kSecondary;
  const Entry& entry = entries.of(candidate);
  const fabric::FarAddr block(context.node, entry.word.offset());
  const Result<Decision> decision = Decide(context.change, entry.item.value, block);
  if (!decision.ok()) co_return decision.error();
  if (!decision->applied) {
    // The value was there when the slot was sampled.
    context.result = {.was_present = true, .applied = false};
    co_return Attempt::kDone;
  }
  if (IsTooLong(look)) {
    const Attempt attempt = co_await Shorten(context.access(), look);
    co_return attempt;
  }
  const OwnEntry own{.candidate = candidate,
                     .step = look.of(candidate).effective(),
                     .replaced = entry.word,
                     .moves = entry.item.moves,
                     .bytes = entry.item.bytes,
                     .removes = decision->removes};
  const Attempt attempt = co_await PlaceAndConclude(context, look, own, entry.word, *decision);
  co_return attempt;
}

Task<Attempt> Changer::ChangeAbsent(ChangeContext& context, Look& look) {
  const Result<Decision> decision = Decide(context.change, std::nullopt);
  if (!decision.ok()) co_return decision.error();
  Attempt attempt;
  if (decision->applied) {
    attempt = co_await Insert(context, look, *decision);
  } else {
    attempt = co_await Refuse(context, look);
  }
  co_return attempt;
}

// Only words that are equal at two looks say that the key was absent at one moment between them.
Task<Attempt> Changer::Refuse(ChangeContext& context, const Look& look) {
  if (!Mutant(kMissAtOnce)) {
    Look again;
    co_await ReadLookAgain(context.op, context.part, look, again);
    if (!SameWords(look, again)) co_return Attempt::kRetry;
  }
  context.result = {.was_present = false, .applied = false};
  co_return Attempt::kDone;
}

Task<Attempt> Changer::Insert(ChangeContext& context, Look& look, const Decision& decision) {
  const Access at = context.access();
  if (IsTooLong(look)) {
    const Attempt attempt = co_await Shorten(at, look);
    co_return attempt;
  }
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
    const Word word = look.word(candidate);
    if (!word.is(Kind::kEmpty)) continue;
    const OwnEntry own{
        .candidate = candidate, .step = look.of(candidate).effective(), .replaced = Word::FirstEmpty()};
    const Attempt attempt = co_await PlaceAndConclude(context, look, own, word, decision);
    co_return attempt;
  }
  const bool split = co_await SplitTrails(at, look);
  if (split) co_return Attempt::kRetry;
  const Room room = co_await room_maker_.Make(at, look);
  switch (room.found) {
    case Room::Found::kLookAgain: co_return Attempt::kRetry;
    case Room::Found::kBusy: co_return AwaitsWriter();
    case Room::Found::kNone: co_return HasNoPlace(context);
    case Room::Found::kFreed: break;
  }
  // Without memory for the new item, the first item of the way need not stand twice.
  const Result<Done> drafted = co_await Draft(context, decision, Word::FirstEmpty()).Outcome();
  if (!drafted.ok()) {
    const uint64_t slot = look.of(room.candidate).effective_step().slot;
    if (drafted.error().code() == ErrorCode::kOutOfMemory)
      co_await cleaner_.ClearSource(at, slot, room.word, room.bytes);
    co_return drafted.error();
  }
  const OwnEntry own{.candidate = room.candidate,
                     .step = look.of(room.candidate).effective(),
                     .replaced = Word::FirstEmpty(),
                     .bytes = room.bytes};
  const Attempt attempt = co_await PlaceAndConclude(context, look, own, room.word, decision);
  co_return attempt;
}

Task<Attempt> Changer::PlaceAndConclude(ChangeContext& context, Look& look, OwnEntry own, Word from,
                                        const Decision& decision) {
  co_await Draft(context, decision, own.replaced);
  own.pending = context.item.WordAs(Kind::kPending, context.key_hash.tag());
  own.own_bytes = context.item.bytes();
  const fabric::FarAddr slot = context.part.SlotAt(look.of(own.candidate).step(own.step).slot);
  const bool placed =
      co_await committer_.Place(context, own, Cas(slot, from.word(), own.pending.word()), look);
  const bool touches = context.change.kind == ChangeKind::kTouch;
  if (!placed && touches && Mutant(kTouchRetiresLosing))
    cleaner_.Retire(context.access(), own.replaced, own.bytes);
  if (!placed) co_return Attempt::kRetry;
  // A source that was left there is cleared by the very CAS that makes the entry pending.
  if (own.is_fresh() && from.is(Kind::kLive)) cleaner_.Retire(context.access(), from, own.bytes);
  const Attempt attempt = co_await Conclude(context, look, own, decision);
  co_return attempt;
}

Task<Attempt> Changer::Conclude(ChangeContext& context, Look& look, OwnEntry own, const Decision& decision) {
  const bool committed = co_await committer_.Conclude(context, own, look);
  context.spare.reset();  // it was reachable: other clients may know its address
  if (!committed) co_return Attempt::kRetry;
  context.result = {.was_present = !own.is_fresh(), .applied = true, .counter = decision.counter};
  if (context.change.kind == ChangeKind::kPut) inserts_.Note(own.is_fresh());
  if (own.is_fresh()) context.part.CountRecords(1);
  if (own.removes) context.part.CountRecords(-1);
  if (own.is_fresh() && sweeper_.IsDue(context.part)) {
    // The change is done; what becomes of the sweep is not its business.
    co_await sweeper_.Sweep(context.access()).Outcome();
  }
  co_return Attempt::kDone;
}

Task<Done> Changer::Draft(ChangeContext& context, const Decision& decision, Word replaced) {
  if (decision.removes) {
    co_await DraftTombstone(context, replaced);
    co_return Done{};
  }
  const std::string_view value = decision.Value(context.change);
  const uint64_t bytes = ItemBytes(context.key.size(), value.size());
  if (!context.item.Reserve(pool_.allocator(context.node), bytes))
    co_await context.item.FetchRoom(context.op);
  context.item.Fill(cleaner_.self(context.part), 0, replaced, context.key, value, context.hash);
  co_return Done{};
}

// In a full pool, on a line that the table has for that.
Task<Done> Changer::DraftTombstone(ChangeContext& context, Word replaced) {
  // The tombstone of an earlier attempt was taken back: readers may still hold its address.
  if (context.spare != nullptr && !context.spare->may_be_written()) context.spare.reset();
  if (context.spare == nullptr && !context.item.Reserve(pool_.allocator(context.node), pool::kLine)) {
    const Result<Done> fetched = co_await context.item.FetchRoom(context.op).Outcome();
    if (!fetched.ok() && fetched.error().code() != ErrorCode::kOutOfMemory) co_return fetched.error();
    if (!fetched.ok()) {
      context.spare = co_await spares_.Take(context.access());
      if (context.spare == nullptr) co_return fetched.error();
      context.item.Adopt(context.spare->at(), pool::kLine);
    }
  }
  const std::string_view key = context.key.size() <= kMostKeyOfTombstone ? context.key : std::string_view();
  context.item.Fill(cleaner_.self(context.part), 0, replaced, key, {}, context.hash);
  co_return Done{};
}

// From the effective slot to the home, as far as no other client is in the way.
Task<bool> Changer::SplitTrails(const Access& at, Look& look) {
  bool changed = false;
  for (Trail& trail : look.trails) {
    for (size_t i = trail.effective(); i-- > 0;) {
      const uint64_t slot = trail.step(i).slot;
      if (!at.part.MaySplit(slot)) break;
      const bool split = co_await splitter_.Split(at, slot);
      if (!split) break;
      changed = true;
    }
  }
  co_return changed;
}

// One resize goes few versions, so a trail that is too long has slots that may be split: if none was, another
// client was in the way.
Task<Attempt> Changer::Shorten(const Access& at, Look& look) {
  const bool split = co_await SplitTrails(at, look);
  if (!split) co_return AwaitsWriter();
  co_return Attempt::kRetry;
}

// The table grows, or says that it cannot.
Result<Attempt> Changer::HasNoPlace(ChangeContext& context) {
  Partition& part = context.part;
  if (!grow_) return NoPlace();
  if (part.directory().announced) return AwaitsGrowth();
  const uint64_t slots = part.shape().slots(part.directory().version);
  if (slots >= kManySlots && part.records() < slots / kManySlotsPerRecord) return NoPlace();
  if (part.failed_growths() != context.failed_growths) return NoMemoryToGrow();
  if (!part.RequestGrowth()) return NoPlace();
  return AwaitsGrowth();
}

}  // namespace farside::index::nessie
