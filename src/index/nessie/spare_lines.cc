#include "index/nessie/spare_lines.h"

#include <array>
#include <span>
#include <utility>

#include "index/nessie/item.h"
#include "index/nessie/mutants.h"
#include "index/nessie/trail.h"

namespace farside::index::nessie {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::Order;
using fabric::Read;

FarAddr SpareLines::Use::at() const { return line_->part->SpareAt(line_->number); }

Task<std::unique_ptr<SpareLines::Use>> SpareLines::Take(Access at) {
  for (const auto& line : lines_) {
    if (line->part == &at.part && !line->in_use && line->past_grace) co_return std::make_unique<Use>(line);
  }
  const size_t first = pool_.member(at.node()).self().slot();
  for (size_t i = 0; i < kSpareLines; ++i) {
    const size_t number = (first + i) % kSpareLines;
    const bool taken = co_await TakeLine(at, number);
    if (taken) co_return std::make_unique<Use>(lines_.back());
  }
  co_return nullptr;
}

Task<bool> SpareLines::TakeLine(const Access& at, size_t number) {
  pool::Membership& member = pool_.member(at.node());
  const uint64_t mine = member.self().bits();
  const FarAddr owner_at = at.part.SpareOwnerAt(number);
  const uint64_t old = co_await at.op.InOrder(Cas(owner_at, 0, mine));
  if (old == mine) co_return false;
  bool past_grace = true;
  if (old != 0) {
    const pool::Owner owner = pool::Owner::FromBits(static_cast<uint32_t>(old));
    const pool::Standing standing = co_await member.StandingOf(at.op, owner);
    if (standing != pool::Standing::kGone) co_return false;
    bool released = Mutant(kSpareBeforeEntry);
    if (!released) released = co_await Release(at, number);
    if (!released) co_return false;
    const uint64_t taken = co_await at.op.InOrder(Cas(owner_at, old, mine));
    if (taken != old) co_return false;
    past_grace = false;
  }
  auto line = std::make_shared<Line>();
  line->part = &at.part;
  line->number = number;
  line->past_grace = past_grace;
  lines_.push_back(line);
  if (!past_grace) AwaitGrace(line);
  co_return past_grace;
}

// All slots of the key, also those that have no say any more since they were split: an entry that its writer
// did not live to take back may stand there.
Task<bool> SpareLines::Release(const Access& at, size_t number) {
  std::array<std::byte, pool::kLine> bytes;
  co_await at.op.InOrder(Read(at.part.SpareAt(number), bytes));
  const Result<Item> item = DecodeItem(bytes);
  if (!item.ok()) co_return true;  // never written, or not to its end: so it was never named
  Look look;
  BeginLook(at.part, KeyHash(item->hash), look);
  for (Trail& trail : look.trails) {
    fabric::Batch batch(at.op, Order::kTogether);
    for (size_t i = 0; i < trail.count(); ++i)
      batch.Add(Read(at.part.SlotAt(trail.step(i).slot),
                     std::as_writable_bytes(std::span(&trail.step(i).word, 1))));
    co_await batch;
    for (size_t i = 0; i < trail.count(); ++i) {
      const Word word = trail.step(i).word;
      if (!word.has_item() || word.offset() != at.part.SpareAt(number).offset) continue;
      if (!word.is(Kind::kPending) || !item->replaced.is(Kind::kLive)) co_return false;
      // INVARIANT nessie/5.
      co_await at.op.InOrder(Cas(at.part.SlotAt(trail.step(i).slot), word.word(), item->replaced.word()));
    }
  }
  co_return true;
}

void SpareLines::Unlinked(Partition& part, uint64_t offset) {
  for (const auto& line : lines_) {
    if (line->part != &part || !line->is_linked || part.SpareAt(line->number).offset != offset) continue;
    line->is_linked = false;
    AwaitGrace(line);
  }
}

void SpareLines::AwaitGrace(const std::shared_ptr<Line>& line) {
  if (Mutant(kSpareWithoutGrace)) {
    line->past_grace = true;
    return;
  }
  pool_.AfterGrace(line->part->node(), [weak = std::weak_ptr<Line>(line), grace = ++line->graces] {
    const std::shared_ptr<Line> waiting = weak.lock();
    if (waiting != nullptr && !waiting->is_linked && waiting->graces == grace) waiting->past_grace = true;
  });
}

void SpareLines::GiveBack(const Access& at) {
  const uint64_t mine = pool_.member(at.node()).self().bits();
  for (auto line = lines_.begin(); line != lines_.end();) {
    const bool is_free = !(*line)->in_use && (*line)->past_grace && (*line)->part == &at.part;
    if (!is_free) {
      ++line;
      continue;
    }
    at.op.Detach(Order::kInOrder, ForMaintenance(Cas(at.part.SpareOwnerAt((*line)->number), mine, 0)));
    line = lines_.erase(line);
  }
}

}  // namespace farside::index::nessie
