// Changes of a key: a look, a pending entry, and the commit.
#pragma once

#include "base/clock.h"
#include "farside/task.h"
#include "index/kit/context.h"
#include "index/kit/tendency.h"
#include "index/nessie/cleaner.h"
#include "index/nessie/committer.h"
#include "index/nessie/context.h"
#include "index/nessie/find_key.h"
#include "index/nessie/options.h"
#include "index/nessie/room_maker.h"
#include "index/nessie/spare_lines.h"
#include "index/nessie/splitter.h"
#include "index/nessie/sweeper.h"
#include "index/nessie/trail.h"
#include "pool/client.h"

namespace farside::index::nessie {

class Changer {
 public:
  Changer(pool::PoolClient& pool, const Options& options, Cleaner& cleaner, Committer& committer,
          RoomMaker& room_maker, Splitter& splitter, Sweeper& sweeper, SpareLines& spares)
      : pool_(pool),
        grow_(options.grow),
        cleaner_(cleaner),
        committer_(committer),
        room_maker_(room_maker),
        splitter_(splitter),
        sweeper_(sweeper),
        spares_(spares) {}

  Task<Attempt> TryChange(ChangeContext& context);

 private:
  bool GoesBlind(const ChangeContext& context) const;
  Task<bool> PutBlind(ChangeContext& context, Look& look, OwnEntry& own);
  Task<Attempt> ChangeByLook(ChangeContext& context, Look& look);
  Task<Attempt> ChangePresent(ChangeContext& context, Look& look, const Entries& entries);
  Task<Attempt> ChangeAbsent(ChangeContext& context, Look& look);
  Task<Attempt> Refuse(ChangeContext& context, const Look& look);
  Task<Attempt> Insert(ChangeContext& context, Look& look, const Decision& decision);
  // `from`: what the slot has: no item, the one that the entry replaces, or one that was copied elsewhere.
  Task<Attempt> PlaceAndConclude(ChangeContext& context, Look& look, OwnEntry own, Word from,
                                 const Decision& decision);
  Task<Attempt> Conclude(ChangeContext& context, Look& look, OwnEntry own, const Decision& decision);
  Task<Done> AwaitWriter(const Access& at, const Look& look, const Entries& entries);
  // Splits the slots of the key. False: nothing has changed.
  Task<bool> SplitTrails(const Access& at, Look& look);
  Task<Attempt> Shorten(const Access& at, Look& look);
  Task<Done> Draft(ChangeContext& context, const Decision& decision, Word replaced);
  Task<Done> DraftTombstone(ChangeContext& context, Word replaced);
  Result<Attempt> HasNoPlace(ChangeContext& context);

  pool::PoolClient& pool_;
  const bool grow_;
  Cleaner& cleaner_;
  Committer& committer_;
  RoomMaker& room_maker_;
  Splitter& splitter_;
  Sweeper& sweeper_;
  SpareLines& spares_;
  Tendency<1, 1, 16> inserts_;  // of puts: the key was absent
};

}  // namespace farside::index::nessie
