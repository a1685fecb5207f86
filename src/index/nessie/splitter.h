// Putting a slot to use: its keys move there from its parent.
//
//   unsplit -> splitting -> live (the parent's item belongs here: a copy of it) or empty
//
//   nessie/8  A slot is put to use by a CAS from the client's own mark. Behind the mark, the client has found
//             in the parent nothing of the slot's keys but the item that it has copied; and nothing of that
//             item's key in its other slot. Every client that changes a slot looks, behind its change, at the
//             slots that this one may be split into, and removes the marks there before it goes on. So
//             between the mark and its end no key of the slot changes. From then on, the parent has no say
//             for these keys, and a slot that is in use stays so for ever.
//
// A mark stops no reader and no writer: a writer of one of the slot's keys takes it away, and then this split
// fails; another client that splits the slot takes it over. A split or a migration of a key that may belong
// to the slot takes the mark away and gives up: the mark may be that of a dead client. A client that dies
// leaves a mark that counts as unsplit, or a second copy in the parent that is cleared by the next client
// which wants that slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "farside/task.h"
#include "index/nessie/cleaner.h"
#include "index/nessie/context.h"
#include "index/nessie/item.h"
#include "index/nessie/layout.h"
#include "index/nessie/trail.h"
#include "pool/client.h"

namespace farside::index::nessie {

// The most slots that are split together: so many copies, marks and looks fit into a trip.
inline constexpr size_t kMostSplitTogether = 8;

class Splitter {
 public:
  Splitter(pool::PoolClient& pool, Cleaner& cleaner) : pool_(pool), cleaner_(cleaner) {}

  // Puts a slot to use, and its parents before it. False: another client was in the way. `clears`: what is
  // left in the parent is cleared too; otherwise the caller does that.
  Task<bool> Split(Access at, uint64_t slot, bool clears = true) { return SplitRange(at, slot, 1, clears); }
  // Some slots that stand side by side in one segment, with parents that stand side by side too, by the same
  // trips: four, and one more if something moved; with eight slots two more, since more than 16 verbs are
  // answered. True: all of them are in use.
  Task<bool> SplitRange(Access at, uint64_t first, size_t count, bool clears = true);

  // Two items of one key in both of its slots, of a migration that did not end: clears the source. The look
  // has both; it is read again (nessie/2).
  Task<Done> ResolveCopies(Access at, const Look& look, uint32_t moves_of_primary,
                           uint32_t moves_of_secondary);

 private:
  // A slot that is being split.
  struct Child {
    uint64_t slot = 0;
    Word from;  // unsplit, or the mark of another client
    Word mark;
    uint64_t parent = 0;
    Word parent_word;
    Word parent_now;  // read behind the mark
    ItemRead read;    // the parent's item, if it has one
    Item item;
    bool belongs = false;                       // the item belongs to the slot, and moves there
    Candidate candidate = Candidate::kPrimary;  // of the item's key
    Look look;  // of the item's key, if it belongs: its other slot is read behind the mark
    ItemDraft copy;
    bool goes_on = true;
  };
  using Children = std::vector<std::unique_ptr<Child>>;

  // Each step ends the split of those children that it finds a reason for (`goes_on`).
  Task<bool> ReadSlots(const Access& at, uint64_t first, size_t count, Children& children);
  Task<bool> SplitParents(const Access& at, const Children& children);
  Task<Done> ReadParents(const Access& at, Children& children);
  Task<Done> LookAtParent(const Access& at, Child& child);
  Task<Done> Mark(const Access& at, Children& children);
  Task<bool> IsUndisturbed(const Access& at, const Child& child);
  Task<Done> Commit(const Access& at, Children& children);
  Task<Done> Clear(const Access& at, Children& children);

  pool::PoolClient& pool_;
  Cleaner& cleaner_;
};

}  // namespace farside::index::nessie
