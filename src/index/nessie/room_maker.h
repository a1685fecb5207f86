// Room for a key whose two slots are both taken: chains of migrations.
//
// With one item to a slot, the way from each of the two slots has no forks: its item can only go to its other
// slot, the item there to its own other slot, and so on, until a slot is empty. Both ways are followed at the
// same time, by the same trips, and the shorter one is cleared from its end. A slot whose item belongs to an
// unsplit child is the end of a way too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "farside/task.h"
#include "index/nessie/cleaner.h"
#include "index/nessie/context.h"
#include "index/nessie/item.h"
#include "index/nessie/layout.h"
#include "index/nessie/mover.h"
#include "index/nessie/splitter.h"
#include "index/nessie/trail.h"

namespace farside::index::nessie {

struct Room {
  enum class Found : uint8_t {
    kFreed,      // the slot of `candidate` has `word`, whose item was copied elsewhere: it may be replaced
    kLookAgain,  // something has changed
    kBusy,       // entries of live writers are in the way
    kNone,       // both ways are too long, or circles
  };
  Found found = Found::kNone;
  Candidate candidate = Candidate::kPrimary;
  Word word;
  uint64_t bytes = 0;
};

class RoomMaker {
 public:
  RoomMaker(uint64_t chain, Cleaner& cleaner, Mover& mover, Splitter& splitter)
      : chain_(chain), cleaner_(cleaner), mover_(mover), splitter_(splitter) {}

  // `look`: of the key that needs room; both of its slots are taken.
  Task<Room> Make(Access at, Look look);

 private:
  // A slot on the way, and the item in it.
  struct Hop {
    uint64_t slot = 0;
    Word word;
    ItemRead read;
    Item item;
    Candidate candidate = Candidate::kPrimary;  // the slot is this one of the item's key
    Look look;                                  // of the item's key
  };
  struct Way {
    Candidate begin = Candidate::kPrimary;
    std::vector<std::unique_ptr<Hop>> hops;
    uint64_t next_slot = 0;
    Word next_word;
    bool is_open = true;
    bool ends_in_child = false;  // of the last hop's slot
  };
  // What following a way further came to.
  enum class Progress : uint8_t { kGoesOn, kEnds, kClosed, kBusy, kLookAgain };

  Task<Progress> Enter(const Access& at, Way& way);
  Task<Done> ReadFrontier(const Access& at, std::vector<Way*>& open);
  Task<Progress> Advance(const Access& at, Way& way);
  Task<bool> EndMigration(const Access& at, const Hop& hop, Word other);
  Task<bool> Clear(const Access& at, Way& way);

  const uint64_t chain_;
  Cleaner& cleaner_;
  Mover& mover_;
  Splitter& splitter_;
};

}  // namespace farside::index::nessie
