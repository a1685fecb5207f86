// Growth: the records of a pair are copied to two pairs of the next table, at the places that they have now.
// Those of the group get places in the pair where there are free ones; of the two pairs, one at most has more
// than fit, and takes over the group. (If both pairs overflowed, both shared regions would be full. With S
// shared slots, the old shared region fills at most S of those 2S; the group fills the rest and has two
// records over: at least S + 2. It has at most S: Shape::is_sound.)
#include <array>
#include <bit>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/continuity/mutants.h"
#include "index/continuity/node_table.h"
#include "pool/memory/block.h"

namespace farside::index::continuity {
namespace {

// A pair of the next table, before it is stored.
struct Image {
  std::array<Slot, kFirstGroup> slots;
  uint32_t bits = 0;
};

}  // namespace

bool NodeTable::Begin(TableWord next) {
  if (growing() || next.doublings() != root_.current.doublings() + 1) return false;
  // No pair is moved to it yet. That has to be durable before there is a table that `moved` speaks of.
  if (!Mutant(kMovedNotReset)) StoreRoot(kMovedOffset, 0);
  root_.moved = memory_.Load(root_at_ + kMovedOffset);
  memory_.Store(next.offset(), 0);
  if (!Mutant(kNoGroupsNotFlushed)) memory_.Flush(next.offset(), sizeof(uint64_t));
  if (!Mutant(kNoGroupsNotDrained)) memory_.Drain();
  StoreRoot(kNextOffset, next.word());
  root_.next = next;
  return true;
}

void NodeTable::StoreRoot(uint64_t offset, uint64_t word) {
  memory_.Store(root_at_ + offset, word);
  if (Mutant(kMovedNotDurable) && offset == kMovedOffset) return;
  if (Mutant(kNextNotDurable) && offset == kNextOffset) return;
  if (Mutant(kCurrentNotDurable) && offset == kCurrentOffset) return;
  memory_.Flush(root_at_ + offset, sizeof word);
  if (Mutant(kCurrentNotDrained) && offset == kCurrentOffset) return;
  memory_.Drain();
}

void NodeTable::Move(const Pair& pair, Reply& reply) {
  const uint64_t pairs = PairsIn(root_.current);
  std::array<Image, 2> images;
  std::array<uint32_t, 2> in_group{};  // of the group's records, those that found no other place
  for (uint32_t left = pair.indicator.bits(); left != 0; left &= left - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(left));
    const Slot content = memory_.LoadSlot(pair.SlotAt(slot));
    const std::optional<SlotView> view = DecodeSlot(content);
    if (!view.has_value()) {
      damaged_ = true;
      return;
    }
    const uint64_t hash = view->in_block ? view->hash : Hash64(AsBytes(view->key));
    const Home home = HomeOf(hash, 2 * pairs);
    if (home.pair % pairs != pair.number) damaged_ = true;
    const size_t which = home.pair >= pairs ? 1 : 0;
    Image& image = images[which];
    uint32_t place = slot;
    if (slot >= kFirstGroup) {
      // Slots below the group come first, so all that stays in place is placed by now.
      const Pair empty{.indicator = Indicator().WithBits(image.bits)};
      const std::optional<uint32_t> free = FreeSlot(empty, home.odd);
      if (!free.has_value()) {
        in_group[which] |= uint32_t{1} << slot;
        continue;
      }
      place = *free;
    }
    image.slots[place] = content;
    image.bits |= uint32_t{1} << place;
  }
  if (!Check().ok() || (in_group[0] != 0 && in_group[1] != 0)) {
    damaged_ = true;
    return;
  }

  const bool keeps_group = (in_group[0] | in_group[1]) != 0;
  if (keeps_group) CountGroup(root_.next);
  for (size_t which = 0; which < images.size(); ++which) {
    const Image& image = images[which];
    const uint64_t at = PairAt(root_.next.offset(), pair.number + which * pairs);
    for (uint32_t left = image.bits; left != 0; left &= left - 1) {
      const auto slot = static_cast<uint32_t>(std::countr_zero(left));
      memory_.StoreSlot(at + SlotInPair(slot), image.slots[slot]);
      if (!Mutant(kCopiedSlotNotFlushed)) memory_.Flush(at + SlotInPair(slot), kSlotBytes);
    }
    memory_.Store(at + kIndicatorAt, Indicator().WithBits(image.bits | in_group[which]).word());
    memory_.Store(at + kIndicatorAt + kGroupOffset, in_group[which] != 0 ? pair.group : 0);
    if (!Mutant(kCopyNotFlushed)) memory_.Flush(at + kIndicatorAt, sizeof(IndicatorBlock));
  }
  if (!Mutant(kCopyNotDrained)) memory_.Drain();
  if (Mutant(kPairNotMarked)) return;
  // INVARIANT continuity/4.
  memory_.Store(pair.indicator_at(), pair.indicator.MovedOn().word());
  if (!Mutant(kMarkNotDurable)) memory_.Flush(pair.indicator_at(), sizeof(uint64_t));
  if (!Mutant(kMarkNotDrained)) memory_.Drain();
  if (pair.group != 0 && !keeps_group) reply.Free({pair.group, kGroupBytes});
}

void NodeTable::MoveSome(uint32_t pairs, Reply& reply) {
  if (!growing() || !Check().ok()) return;
  const uint64_t all = PairsIn(root_.current);
  // A pair may free its group, and the last one the old table, too.
  const auto has_room = [&reply] { return reply.freed_count() + 2 <= kMostFreed; };
  for (; pairs > 0 && has_room() && root_.moved < all; --pairs) {
    const Pair pair = Load(root_.current, root_.moved);
    if (!pair.indicator.moved()) Move(pair, reply);
    if (!Check().ok()) return;
    ++root_.moved;
    // Durable marks come first, so that after a power cut it never says too much. It only spares looks.
    memory_.Store(root_at_ + kMovedOffset, root_.moved);
    if (Mutant(kRootBeforeCopy)) break;
  }
  if (root_.moved >= all || Mutant(kRootBeforeCopy)) End(reply);
}

// INVARIANT continuity/5.
void NodeTable::End(Reply& reply) {
  const TableWord old = root_.current;
  StoreRoot(kCurrentOffset, root_.next.word());
  root_.current = root_.next;
  StoreRoot(kNextOffset, 0);
  root_.next = TableWord();
  reply.Free({old.offset(), TableBytes(PairsIn(old))});
}

}  // namespace farside::index::continuity
