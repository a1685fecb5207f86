// Migration: a copy of an item is made in the other slot of its key, and then the source is cleared.
//
//   nessie/1  A claim names a new item, the copy, with one move more; items never change their slots. The
//             claim becomes live only if, behind it, the source was found unchanged and no slot of the key
//             was being split. The source is cleared only when the copy is live: a reader always finds one of
//             them.
//
// Any client may remove a claim, and then the migration fails; readers ignore claims. A client that dies
// leaves a claim, which the next client that meets it removes, or two copies, of which the next writer of the
// key clears the source.
#pragma once

#include <cstdint>

#include "farside/task.h"
#include "index/nessie/cleaner.h"
#include "index/nessie/context.h"
#include "index/nessie/item.h"
#include "index/nessie/layout.h"
#include "index/nessie/trail.h"
#include "pool/client.h"

namespace farside::index::nessie {

class Mover {
 public:
  Mover(pool::PoolClient& pool, Cleaner& cleaner) : pool_(pool), cleaner_(cleaner) {}

  // Copies the item in the effective slot of candidate `from` to the other one, where `expected` stands: an
  // empty word, or a live one whose item was copied elsewhere, which is cleared on the way. The source stays,
  // for the caller to clear. False: another client was in the way; nothing is left but, of a move to a lower
  // slot, an entry without a key in the move log. `cleared`: whether `expected` is gone.
  Task<bool> Copy(Access at, Look& look, Candidate from, const Item& item, Word expected,
                  uint64_t expected_bytes, bool& cleared);

 private:
  // `move`: its number in the move log, if it is one to a lower slot.
  Task<bool> Claim(const Access& at, Look& look, Candidate from, ItemDraft& copy, Word claim, Word expected,
                   uint64_t& move);
  static void EnterNoMove(const Access& at, uint64_t move);
  Task<bool> IsUndisturbed(const Access& at, const Look& look, Candidate from, Word source);

  pool::PoolClient& pool_;
  Cleaner& cleaner_;
};

}  // namespace farside::index::nessie
