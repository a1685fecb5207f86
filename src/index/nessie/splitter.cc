#include "index/nessie/splitter.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <span>
#include <utility>

#include "index/nessie/errors.h"
#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Cas;
using fabric::Order;
using fabric::Read;

namespace {

// Of the other slot of a key that moves, where several slots are split together: so many looks fit into a
// trip. A longer trail has to wait for a split of its own.
constexpr size_t kMostStepsTogether = 4;

template <class Children>
bool AnyGoesOn(const Children& children) {
  return std::any_of(children.begin(), children.end(), [](const auto& child) { return child->goes_on; });
}

}  // namespace

Task<bool> Splitter::SplitRange(Access at, uint64_t first, size_t count, bool clears) {
  Children children;
  bool all_used = co_await ReadSlots(at, first, count, children);  // trip 1
  if (all_used) co_return true;
  const bool parents_split = co_await SplitParents(at, children);
  if (parents_split) all_used = co_await ReadSlots(at, first, count, children);
  if (all_used) co_return true;
  co_await ReadParents(at, children);  // trip 2
  if (!AnyGoesOn(children)) co_return false;
  co_await Mark(at, children);  // trip 3
  if (!AnyGoesOn(children)) co_return false;
  co_await Commit(at, children);  // trip 4
  if (clears) co_await Clear(at, children);
  co_return std::all_of(children.begin(), children.end(), [](const auto& child) { return child->goes_on; });
}

// True: all of them are in use.
Task<bool> Splitter::ReadSlots(const Access& at, uint64_t first, size_t count, Children& children) {
  assert(count <= kMostSplitTogether && first % count == 0);
  std::array<Word, kMostSplitTogether> slots;
  std::array<Word, kMostSplitTogether> parents;
  const uint64_t parent = Shape::ParentOf(first);
  co_await at.op.Together(
      Read(at.part.SlotAt(first), std::as_writable_bytes(std::span(slots).first(count))),
      Read(at.part.SlotAt(parent), std::as_writable_bytes(std::span(parents).first(count))));
  children.clear();
  for (size_t i = 0; i < count; ++i) {
    if (slots[i].is_effective()) continue;
    auto child = std::make_unique<Child>();
    child->slot = first + i;
    child->from = slots[i];
    child->parent = parent + i;
    child->parent_word = parents[i];
    child->goes_on = parents[i].is_effective();
    children.push_back(std::move(child));
  }
  co_return children.empty();
}

// Those that are not in use themselves, and theirs. True: there were some.
Task<bool> Splitter::SplitParents(const Access& at, const Children& children) {
  bool any = false;
  for (const auto& child : children) {
    if (child->parent_word.is_effective()) continue;
    if (!at.shape().HasParent(child->parent)) co_return BrokenTrail(at.part, child->parent);
    any = co_await Split(at, child->parent) || any;
  }
  co_return any;
}

Task<Done> Splitter::ReadParents(const Access& at, Children& children) {
  std::vector<ItemRead*> reads;
  for (const auto& child : children) {
    const Word word = child->parent_word;
    if (word.is_damaged()) co_return BrokenWord(at.part, child->parent);
    if (!child->goes_on || !word.has_item() || word.is(Kind::kClaim)) continue;
    child->read.word = word;
    reads.push_back(&child->read);
  }
  co_await ReadManyItems(at.op, at.node(), reads);
  for (const auto& child : children) {
    if (child->goes_on) co_await LookAtParent(at, *child);
  }
  co_return Done{};
}

Task<Done> Splitter::LookAtParent(const Access& at, Child& child) {
  const Word word = child.parent_word;
  if (word.is(Kind::kClaim)) {
    const Swapped removed = co_await cleaner_.RemoveClaim(at, child.parent, word);
    child.parent_word = removed.now;
    child.goes_on = removed.done;
    co_return Done{};
  }
  if (!word.has_item()) co_return Done{};
  const Result<Item> item = child.read.Decode();
  if (!item.ok()) co_return item.error();
  child.item = *item;
  BeginLook(at.part, KeyHash(child.item.hash), child.look);
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
    if (!child.look.of(candidate).Find(child.slot).has_value()) continue;
    child.candidate = candidate;
    child.belongs = true;
  }
  if (!child.belongs || word.is(Kind::kLive)) co_return Done{};
  // A pending entry of a key that would move.
  child.goes_on = false;
  const bool gone = co_await cleaner_.IsGone(at, child.item.owner, word);
  if (gone) co_await cleaner_.RollBack(at, child.parent, word, child.item);
  co_return Done{};
}

// INVARIANT nessie/8: CAS, READ keep their order, so parents and other slots are read behind the marks.
Task<Done> Splitter::Mark(const Access& at, Children& children) {
  for (const auto& child : children) {
    if (!child->goes_on || !child->belongs) continue;
    const Item& item = child->item;
    if (!child->copy.Reserve(pool_.allocator(at.node()), ItemBytes(item.key.size(), item.value.size())))
      co_await child->copy.FetchRoom(at.op);
    child->copy.Fill(cleaner_.self(at.part), item.moves + 1, child->parent_word, item.key, item.value,
                     item.hash);
  }
  fabric::Batch batch(at.op, Order::kInOrder);
  for (const auto& child : children) {
    if (!child->goes_on || !child->belongs) continue;
    batch.Add(child->copy.Write());
    child->copy.Publish();  // until it is written: an operation that is destroyed meanwhile must not free it
  }
  std::array<size_t, kMostSplitTogether> swaps{};
  for (size_t i = 0; i < children.size(); ++i) {
    Child& child = *children[i];
    if (!child.goes_on) continue;
    child.mark = cleaner_.NewToken(at.part, Kind::kSplitting);
    swaps[i] = batch.Add(Cas(at.part.SlotAt(child.slot), child.from.word(), child.mark.word()));
  }
  for (const auto& child : children) {
    if (!child->goes_on) continue;
    child->parent_now = child->parent_word;
    if (!Mutant(kParentReadBeforeMark))
      batch.Add(Read(at.part.SlotAt(child->parent), BytesOf(child->parent_now)));
    if (!child->belongs) continue;
    Trail& other = child->look.of(Other(child->candidate));
    other.set_read(children.size() == 1 ? other.count() : std::min(other.count(), kMostStepsTogether));
    for (size_t i = 0; i < other.read(); ++i)
      batch.Add(Read(at.part.SlotAt(other.step(i).slot), BytesOf(other.step(i).word)));
  }
  co_await batch;
  for (size_t i = 0; i < children.size(); ++i) {
    Child& child = *children[i];
    if (!child.goes_on) continue;
    if (child.belongs) child.copy.Unpublish();
    child.goes_on = batch.Old(swaps[i]) == child.from.word();
    if (!child.goes_on) continue;
    child.goes_on = co_await IsUndisturbed(at, child);
    if (!child.goes_on) co_await cleaner_.Unmark(at, child.slot, child.mark);
  }
  co_return Done{};
}

// Nothing of the slot's keys is changing.
Task<bool> Splitter::IsUndisturbed(const Access& at, const Child& child) {
  if (child.parent_now != child.parent_word) co_return false;
  if (!child.belongs || Mutant(kOtherSlotNotLookedAt)) co_return true;
  const Trail& other = child.look.of(Other(child.candidate));
  if (!other.is_settled()) co_return false;
  // A mark there may be that of a client which moves the same key to another slot: both would make a copy. Or
  // it is that of a dead client. It is removed.
  bool marked = false;
  for (size_t i = 0; i < other.effective(); ++i) {
    const Trail::Step& above = other.step(i);
    if (!above.word.is(Kind::kSplitting)) continue;
    co_await cleaner_.Unmark(at, above.slot, above.word);
    marked = true;
  }
  if (marked) co_return false;
  const Trail::Step& step = other.effective_step();
  if (!step.word.has_item() || step.word.tag() != child.parent_word.tag()) co_return true;
  if (step.word.is(Kind::kClaim)) {
    co_await cleaner_.RemoveClaim(at, step.slot, step.word);
    co_return false;
  }
  ItemRead read(step.word);
  const Item item = co_await ReadItem(at.op, at.node(), read);
  if (!item.IsOf(child.item.key, child.item.hash, step.word.is(Kind::kPending))) co_return true;
  if (step.word.is(Kind::kLive)) {
    // Two copies, of a migration that did not end.
    Look look = child.look;
    Trail& own = look.of(child.candidate);
    const size_t step_of_parent = *own.Find(child.parent);
    for (size_t i = 0; i < step_of_parent; ++i) own.step(i).word = Word();
    own.step(step_of_parent).word = child.parent_word;
    own.set_read(step_of_parent + 1);
    const bool primary = child.candidate == Candidate::kPrimary;
    co_await ResolveCopies(at, look, primary ? child.item.moves : item.moves,
                           primary ? item.moves : child.item.moves);
  }
  co_return false;
}

Task<Done> Splitter::Commit(const Access& at, Children& children) {
  fabric::Batch batch(at.op, Order::kTogether);
  std::array<size_t, kMostSplitTogether> swaps{};
  for (size_t i = 0; i < children.size(); ++i) {
    Child& child = *children[i];
    if (!child.goes_on) continue;
    Word to;
    if (child.belongs) {
      to = child.copy.WordAs(Kind::kLive, child.parent_word.tag());
      child.copy.Publish();
    } else {
      to = cleaner_.NewToken(at.part, Kind::kEmpty);
    }
    swaps[i] = batch.Add(Cas(at.part.SlotAt(child.slot), child.mark.word(), to.word()));
  }
  co_await batch;
  for (size_t i = 0; i < children.size(); ++i) {
    Child& child = *children[i];
    if (!child.goes_on) continue;
    child.goes_on = batch.Old(swaps[i]) == child.mark.word();
    if (!child.goes_on && child.belongs) child.copy.Unpublish();
  }
  co_return Done{};
}

// What moved is left in the parents.
Task<Done> Splitter::Clear(const Access& at, Children& children) {
  fabric::Batch batch(at.op, Order::kTogether);
  std::array<size_t, kMostSplitTogether> swaps{};
  for (size_t i = 0; i < children.size(); ++i) {
    Child& child = *children[i];
    if (!child.goes_on || !child.belongs) continue;
    const Word empty = cleaner_.NewToken(at.part, Kind::kEmpty);
    swaps[i] = batch.Add(Cas(at.part.SlotAt(child.parent), child.parent_word.word(), empty.word()));
  }
  co_await batch;
  for (size_t i = 0; i < children.size(); ++i) {
    const Child& child = *children[i];
    if (!child.goes_on || !child.belongs || batch.Old(swaps[i]) != child.parent_word.word()) continue;
    cleaner_.Retire(at, child.parent_word, child.item.bytes);
  }
  co_return Done{};
}

Task<Done> Splitter::ResolveCopies(Access at, const Look& look, uint32_t moves_of_primary,
                                   uint32_t moves_of_secondary) {
  if (!Mutant(kCopiesToldAtOnce)) {
    Look again;
    co_await ReadLookAgain(at.op, at.part, look, again);
    if (!SameWords(look, again)) co_return Done{};
  }
  Candidate source = moves_of_primary < moves_of_secondary ? Candidate::kPrimary : Candidate::kSecondary;
  if (Mutant(kCopyRemoved)) source = Other(source);
  const Trail::Step& step = look.of(source).effective_step();
  const uint64_t bytes = co_await BytesOfItem(at.op, at.node(), step.word);
  co_await cleaner_.ClearSource(at, step.slot, step.word, bytes);
  co_return Done{};
}

}  // namespace farside::index::nessie
