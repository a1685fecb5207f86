#include "index/nessie/room_maker.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <span>

#include "index/nessie/errors.h"

namespace farside::index::nessie {

Task<Room> RoomMaker::Make(Access at, Look look) {
  std::array<Way, kCandidates> ways;
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
    Way& way = ways[static_cast<size_t>(candidate)];
    way.begin = candidate;
    way.next_slot = look.of(candidate).effective_step().slot;
    way.next_word = look.of(candidate).effective_step().word;
  }
  bool busy = false;
  for (uint64_t length = 0; length < chain_; ++length) {
    std::vector<Way*> open;
    for (Way& way : ways) {
      if (!way.is_open) continue;
      const Progress entered = co_await Enter(at, way);
      if (entered == Progress::kLookAgain) co_return Room{.found = Room::Found::kLookAgain};
      busy = busy || entered == Progress::kBusy;
      way.is_open = entered == Progress::kGoesOn;
      if (way.is_open) open.push_back(&way);
    }
    if (open.empty()) break;
    co_await ReadFrontier(at, open);
    for (Way* way : open) {
      const Progress advanced = co_await Advance(at, *way);
      if (advanced == Progress::kLookAgain) co_return Room{.found = Room::Found::kLookAgain};
      busy = busy || advanced == Progress::kBusy;
      if (advanced == Progress::kClosed || advanced == Progress::kBusy) way->is_open = false;
      if (advanced != Progress::kEnds) continue;
      const bool cleared = co_await Clear(at, *way);
      if (!cleared) co_return Room{.found = Room::Found::kLookAgain};
      const Hop& first = *way->hops.front();
      co_return Room{.found = Room::Found::kFreed,
                     .candidate = way->begin,
                     .word = first.word,
                     .bytes = first.item.bytes};
    }
  }
  co_return Room{.found = busy ? Room::Found::kBusy : Room::Found::kNone};
}

// The slot that the way comes to is not empty.
Task<RoomMaker::Progress> RoomMaker::Enter(const Access& at, Way& way) {
  const Word word = way.next_word;
  if (word.is_damaged()) co_return BrokenWord(at.part, way.next_slot);
  if (word.is(Kind::kClaim)) {
    co_await cleaner_.RemoveClaim(at, way.next_slot, word);
    co_return Progress::kLookAgain;
  }
  if (word.is(Kind::kPending)) {
    ItemRead read(word);
    const Item item = co_await ReadItem(at.op, at.node(), read);
    const bool gone = co_await cleaner_.IsGone(at, item.owner, word);
    if (!gone) co_return Progress::kBusy;
    co_await cleaner_.RollBack(at, way.next_slot, word, item);
    co_return Progress::kLookAgain;
  }
  auto hop = std::make_unique<Hop>();
  hop->slot = way.next_slot;
  hop->word = word;
  hop->read.word = word;
  way.hops.push_back(std::move(hop));
  co_return Progress::kGoesOn;
}

// Two trips: the items, and the slots of their keys.
Task<Done> RoomMaker::ReadFrontier(const Access& at, std::vector<Way*>& open) {
  std::array<ItemRead*, kMostItemReads> reads{};
  for (size_t i = 0; i < open.size(); ++i) reads[i] = &open[i]->hops.back()->read;
  co_await ReadItems(at.op, at.node(), std::span(reads).first(open.size()));
  std::array<Look*, kMostItemReads> looks{};
  for (size_t i = 0; i < open.size(); ++i) {
    Hop& hop = *open[i]->hops.back();
    const Result<Item> item = hop.read.Decode();
    if (!item.ok()) co_return item.error();
    hop.item = *item;
    BeginLook(at.part, KeyHash(item->hash), hop.look);
    looks[i] = &hop.look;
  }
  co_await FinishLooks(at.op, at.part, looks[0], looks[1]);
  co_return Done{};
}

Task<RoomMaker::Progress> RoomMaker::Advance(const Access& at, Way& way) {
  Hop& hop = *way.hops.back();
  std::optional<size_t> step;
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
    const std::optional<size_t> found = hop.look.of(candidate).Find(hop.slot);
    if (!found.has_value()) continue;
    hop.candidate = candidate;
    step = found;
  }
  if (!step.has_value()) co_return BrokenWord(at.part, hop.slot);
  const Trail& own = hop.look.of(hop.candidate);
  const Trail& other = hop.look.of(Other(hop.candidate));
  if (own.effective() < *step) {
    // The key stands in a child of the slot: what is here was left behind by its split.
    co_await cleaner_.ClearSource(at, hop.slot, hop.word, hop.item.bytes);
    co_return Progress::kLookAgain;
  }
  if (own.effective() != *step || own.effective_step().word != hop.word) co_return Progress::kLookAgain;
  if (*step > 0 && at.part.MaySplit(own.step(*step - 1).slot)) {
    way.ends_in_child = true;
    co_return Progress::kEnds;
  }
  assert(own.read() <= kMostTrailOfChange);  // the slots above are only announced
  if (other.read() > kMostTrailOfChange) {
    // More growth would make it longer still: it is shortened, by the slot next to the one that is in use.
    const uint64_t child = other.step(other.effective() - 1).slot;
    bool split = false;
    if (at.part.MaySplit(child)) split = co_await splitter_.Split(at, child);
    co_return split ? Progress::kLookAgain : Progress::kBusy;
  }
  const Trail::Step& next = other.effective_step();
  if (next.word.is(Kind::kEmpty)) co_return Progress::kEnds;
  const bool twice = co_await EndMigration(at, hop, next.word);
  if (twice) co_return Progress::kLookAgain;
  const bool is_circle = std::any_of(way.hops.begin(), way.hops.end(),
                                     [&next](const auto& passed) { return passed->slot == next.slot; });
  if (is_circle) co_return Progress::kClosed;
  way.next_slot = next.slot;
  way.next_word = next.word;
  co_return Progress::kGoesOn;
}

// Whether the item stands in both slots of its key, because a client died in the middle of a migration. Then
// the source is cleared (nessie/2).
Task<bool> RoomMaker::EndMigration(const Access& at, const Hop& hop, Word other) {
  if (!other.is(Kind::kLive) || other.tag() != hop.word.tag()) co_return false;
  ItemRead read(other);
  const Item item = co_await ReadItem(at.op, at.node(), read);
  if (item.key != hop.item.key) co_return false;
  const bool primary = hop.candidate == Candidate::kPrimary;
  co_await splitter_.ResolveCopies(at, hop.look, primary ? hop.item.moves : item.moves,
                                   primary ? item.moves : hop.item.moves);
  co_return true;
}

// From the end of the way to its beginning: each item is copied to the slot behind it, whose own was copied
// before. The first one stays for the caller to replace.
Task<bool> RoomMaker::Clear(const Access& at, Way& way) {
  for (size_t i = way.hops.size(); i-- > 0;) {
    Hop& hop = *way.hops[i];
    const bool is_last = i + 1 == way.hops.size();
    Result<bool> copied = false;
    bool cleared = is_last;
    if (is_last && way.ends_in_child) {
      const Trail& own = hop.look.of(hop.candidate);
      copied = co_await splitter_.Split(at, own.step(own.effective() - 1).slot, false).Outcome();
    } else {
      const Word expected =
          is_last ? hop.look.of(Other(hop.candidate)).effective_step().word : way.hops[i + 1]->word;
      const uint64_t bytes = is_last ? 0 : way.hops[i + 1]->item.bytes;
      copied =
          co_await mover_.Copy(at, hop.look, hop.candidate, hop.item, expected, bytes, cleared).Outcome();
    }
    if (copied.ok() && *copied) continue;
    // What was copied already need not stand twice, also if there is no memory for the next copy.
    const bool goes_on = copied.ok() || copied.error().code() == ErrorCode::kOutOfMemory;
    if (!is_last && !cleared && goes_on) {
      const Hop& behind = *way.hops[i + 1];
      co_await cleaner_.ClearSource(at, behind.slot, behind.word, behind.item.bytes);
    }
    if (!copied.ok()) co_return copied.error();
    co_return false;
  }
  co_return true;
}

}  // namespace farside::index::nessie
