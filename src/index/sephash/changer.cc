#include "index/sephash/changer.h"

#include <algorithm>
#include <string_view>

#include "index/sephash/errors.h"
#include "index/sephash/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::FarAddr;
using fabric::MaskedCas;
using fabric::Order;
using fabric::Read;
using fabric::Write;

namespace {

// How long an operation that finds a round full waits before it merges: the client that has filled the round
// merges it at once, so that there is something to wait for unless that client is dead or slow.
constexpr int kPausesUntilMerge = 6;
constexpr uint8_t kFilterByte = 1;

// The slot that is filled next.
uint32_t FreeSlot(const Segment& segment, const Look& look) {
  const uint32_t last = segment.free_slot;
  if (Mutant(kWindowTrusted) && last < look.sampled && look.image.entries[last].epoch() != look.epoch())
    return last;
  if (!Mutant(kFreeSlotByPair)) return look.Used();
  // As the paper has it: a slot that is free behind one that is not.
  for (uint32_t slot = look.sampled; slot-- > 1;) {
    const bool is_free = look.image.entries[slot].epoch() != look.epoch();
    if (is_free && look.image.entries[slot - 1].epoch() == look.epoch()) return slot;
  }
  return look.Used();
}

// INVARIANT sephash/6: an entry of the round is there only behind the byte of its fingerprint, and no such
// byte is ever cleared.
bool FilterKnows(const ChangeContext& context, const Look& look, uint8_t fp) {
  if (context.filtered == look.meta()) return true;
  const std::span<const Entry> entries = look.entries();
  return std::any_of(entries.begin(), entries.end(), [&look, fp](Entry entry) {
    return entry.epoch() == look.epoch() && entry.fp() == fp && !entry.is_padding();
  });
}

}  // namespace

// A put need not know whether its key is present: it reads no more than the CurSegment.
Task<Attempt> Changer::TryChange(ChangeContext& context) {
  const KeyAccess& at = context.at;
  if (!at.directory.known()) co_await at.directory.Load(at.op);
  if (closer_.IsDue()) co_await closer_.CloseOne(at.op, *context.pin).Outcome();
  Segment& segment = at.directory.Find(at.hash);
  const bool blind = context.change.kind == ChangeKind::kPut;
  View view;
  Look& look = view.look;
  if (blind) {
    co_await reader_.ReadLook(at.op, segment, reader_.Window(segment), look);  // trip 1
    if (!Mutant(kWindowTrusted)) reader_.NoteUsed(segment, look.Used());
  } else {
    co_await reader_.ReadView(at.op, segment, at.fp(), view);  // trip 1
  }
  // INVARIANT sephash/10.
  if (!look.Covers(at.hash) && !Mutant(kDepthIgnored)) {
    co_await at.directory.Follow(at.op, segment, look.meta(), at.hash);
    co_return Attempt::kRetry;
  }
  std::optional<Found> found;
  BlockBuffer block;
  if (!blind) found = co_await FindInView(at, view, block);
  if (context.change.kind == ChangeKind::kTouch) co_await NoteTouched(context, segment, look, found);
  if (found.has_value() && !found->present()) found.reset();
  const Decision decision = co_await DecideAndDraft(context, found);
  context.result = {.was_present = found.has_value(),
                    .applied = decision.applied,
                    .counter = decision.counter,
                    .told = !blind};
  if (!decision.applied) co_return Attempt::kDone;

  if (FreeSlot(segment, look) == look.sampled) {
    const bool is_full = look.sampled == at.shape().entries;
    if (Mutant(kPartialLookMerged)) co_await Merge(context, segment, look);
    segment.free_slot = at.shape().entries;  // so that the next look is at all of it
    if (is_full) co_await MakeRoom(context, segment, look);
    co_return Attempt::kRetry;
  }
  const uint32_t depth = Mutant(kOldDepthBits) ? segment.born : look.depth();
  const Tag tag = at.tag(depth);
  const Entry entry =
      decision.removes ? Entry::Tombstone(look.epoch(), tag, found->entry.offset())
                       : Entry::OfBlock(look.epoch(), tag, context.draft.at().offset, context.draft.bytes());
  const Attempt appended = co_await Append(context, segment, look, entry);  // trip 2
  if (context.change.kind == ChangeKind::kTouch) {
    pool::Allocator& allocator = pool_.allocator(context.node);
    const bool done = appended == Attempt::kDone;
    const FarAddr moved(context.node, found->entry.offset());
    if (done && Mutant(kTouchFreesAtOnce)) allocator.FreeUnpublished(moved, found->bytes);
    if (!done && Mutant(kTouchRetiresLosing))
      allocator.Retire(moved, found->bytes, context.pin->epoch(context.node));
  }
  if (appended == Attempt::kDone && decision.removes)
    closer_.NoteDelete(at, segment, look, view.main_entries);
  co_return appended;
}

// A block of a key that is absent may be one that a merge has dropped.
Task<Done> Changer::NoteTouched(ChangeContext& context, Segment& segment, const Look& look,
                                const std::optional<Found>& found) {
  bool may_name = found.has_value();
  if (!may_name) {
    const MainHead head = co_await reader_.ReadHead(context.op, segment, look.meta());
    may_name = head.dropped > 0;
  }
  if (may_name) closer_.NoteTouched(context.at, segment);
  co_return Done{};
}

Task<Decision> Changer::DecideAndDraft(ChangeContext& context, const std::optional<Found>& found) {
  std::optional<std::string_view> value;
  FarAddr block;
  if (found.has_value()) value = found->value;
  if (found.has_value()) block = FarAddr(context.node, found->entry.offset());
  const Change& change = context.change;
  const Result<Decision> decision = Decide(change, value, block);
  if (!decision.ok()) co_return decision.error();
  if (!decision->applied || decision->removes) co_return *decision;
  const std::string_view stored = decision->Value(change);
  const bool had_room = context.draft.owned();
  if (!context.draft.Reserve(pool_.allocator(context.node),
                             pool::BlockBytes(change.key.size(), stored.size()))) {
    const Result<Done> fetched = co_await context.draft.FetchRoom(context.op).Outcome();
    // Segments hold blocks of values that were replaced or deleted. (A touch is housekeeping itself.)
    const bool is_full = !fetched.ok() && fetched.error().code() == ErrorCode::kOutOfMemory;
    if (is_full && change.kind != ChangeKind::kTouch) closer_.NoteSome(context.at);
    if (!fetched.ok()) co_return fetched.error();
  }
  // An earlier attempt has written the same bytes, unless the value follows from what was found.
  context.written &= had_room && change.kind != ChangeKind::kIncrement;
  if (!context.written) context.draft.Fill(change.key, stored, context.hash);
  co_return *decision;
}

// ---- appending ---------------------------------------------------------------------------------------

// INVARIANT sephash/2: a slot that another client has filled was seen: by the look, or by the CAS that
// failed. If its entry may be of the same key, everything is looked at again; otherwise the look holds, with
// one entry more. The lines of a look may be sampled in any order: there may be entries of the round behind a
// slot that was sampled as free.
Task<Attempt> Changer::Append(ChangeContext& context, Segment& segment, Look& look, Entry entry) {
  const bool blind = context.change.kind == ChangeKind::kPut;
  for (uint32_t slot = FreeSlot(segment, look); slot < look.sampled; ++slot) {
    const bool is_free = look.image.entries[slot].epoch() != look.epoch() || Mutant(kFilledSlotTaken);
    bool done = false;
    if (is_free) done = co_await TrySlot(context, segment, look, slot, entry);
    if (done) {
      segment.free_slot = slot + 1;
      // Whatever becomes of the merge, the change is done.
      if (slot + 1 == context.at.shape().entries) co_await Merge(context, segment, look).Outcome();
      co_return Attempt::kDone;
    }
    if (is_free) context.op.CountRetry();
    const Entry met = look.image.entries[slot];
    if (met.epoch() != look.epoch()) break;  // the round is over
    if (!blind && met.tag() == entry.tag() && !Mutant(kNextSlotUnseen)) break;
  }
  co_return Attempt::kRetry;
}

Task<bool> Changer::TrySlot(ChangeContext& context, Segment& segment, Look& look, uint32_t slot,
                            Entry entry) {
  const bool old = Mutant(kFilterOfOldMain) && segment.main != nullptr;
  const uint64_t named = old ? segment.main->at.offset : look.meta().main();
  const FarAddr filter_at = FarAddr(segment.at.node, named) + FilterByteOffset(entry.fp());
  const auto set_filter = Write(filter_at, std::as_bytes(std::span(&kFilterByte, 1)));
  const bool sets_filter = !FilterKnows(context, look, entry.fp()) && !Mutant(kFilterAfterCas);
  if (sets_filter && !options_.zero_wait) co_await context.op.InOrder(set_filter);
  const Entry expected = look.image.entries[slot];
  Entry appended = entry;
  if (Mutant(kFp2OfLastRound)) {
    const Tag fp2 = LowBits(kFp2Bits) << kFingerprintShift;
    appended = entry.WithTag((entry.tag() & ~fp2) | (expected.tag() & fp2));
  }
  // WRITE, CAS keep their order: the block is complete, and the filter says so, before the entry is there.
  fabric::SmallBatch<3> trip(context.op, Order::kInOrder);
  const bool has_draft = context.draft.owned();
  if (has_draft && !context.written) trip.Add(context.draft.Write());
  if (sets_filter && options_.zero_wait) trip.Add(set_filter);
  const bool by_write = context.change.kind == ChangeKind::kTouch && Mutant(kTouchByWrite);
  const FarAddr at = EntryAt(segment.at, slot);
  const size_t cas = trip.Add(by_write ? MaskedCas(at, 0, 0, 0, appended.word(), ~uint64_t{0})
                                       : Cas(at, expected.word(), appended.word()));
  if (has_draft) context.draft.Publish();
  co_await trip;
  context.filtered = look.meta();
  look.image.entries[slot] = Entry(trip.Old(cas));
  const bool done = trip.Old(cas) == expected.word() || by_write;
  if (done) look.image.entries[slot] = appended;
  if (!done && has_draft) context.draft.Unpublish();
  context.written = has_draft && !done;
  if (Mutant(kFilterAfterCas)) co_await context.op.InOrder(set_filter);
  co_return done;
}

// ---- full rounds -------------------------------------------------------------------------------------

// A pause is twice as long as the one before: all of them take about as long as a split under load.
Task<Done> Changer::MakeRoom(ChangeContext& context, Segment& segment, const Look& look) {
  for (int pause = 1; pause <= kPausesUntilMerge; ++pause) {
    co_await context.op.Pause(options_.backoff * (1 << pause));
    const SegmentHeader header = co_await context.op.InOrder(Read<SegmentHeader>(segment.at));
    if (header.meta != look.meta()) co_return Done{};
  }
  if (!segment.merging) co_await Merge(context, segment, look);
  co_return Done{};
}

Task<Done> Changer::Merge(ChangeContext& context, Segment& segment, const Look& look) {
  const bool frees = context.change.kind == ChangeKind::kDelete;
  const uint64_t birth = context.pin->epoch(context.node);
  return merger_.Merge(context.at, segment, look, birth, frees);
}

}  // namespace farside::index::sephash
