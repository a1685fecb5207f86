// The lock of a bucket: the owner in its head.
#include "index/reference/errors.h"
#include "index/reference/mutants.h"
#include "index/reference/table.h"

namespace farside::index::reference {

using fabric::Cas;
using fabric::FarAddr;
using fabric::MaskedCas;
using fabric::Op;
using fabric::Read;
using fabric::WriteObject;
using pool::Owner;
using pool::Standing;

// Returns the bucket as it is under the lock, with this client as owner in its head. kContended if another
// client holds the lock: the driver then waits without a pin.
Task<Bucket> Table::Lock(Op& op, FarAddr at) {
  pool::Membership& member = pool().member(at.node);
  const Owner me = member.self();
  // CAS, READ keep their order, so the bucket is read under the lock if the CAS took it.
  auto [word, bucket] = co_await op.InOrder(
      MaskedCas(at, Head().word(), 0, Head::OwnerBits::kMask, me.bits(), Head::OwnerBits::kMask),
      Read<Bucket>(at));
  const Head found(word);
  bucket.head = found.WithOwner(me);
  if (!found.locked()) co_return bucket;

  // INVARIANT reference/2: an owner that is gone has been fenced, and its half-written image stays what it
  // is: an image that does not count.
  const Standing standing = co_await member.StandingOf(op, found.owner());
  if (standing != Standing::kGone || Mutant(kNoTakeover)) co_return Locked();
  const Bucket taken = co_await TakeOver(op, at, found);
  co_return taken;
}

// Takes the lock from an owner that is gone. kContended: another client was faster, or another operation of
// this client.
Task<Bucket> Table::TakeOver(Op& op, FarAddr at, Head held) {
  const Head mine = held.TakenOverBy(pool().member(at.node).self());
  auto [word, bucket] = co_await op.InOrder(Cas(at, held.word(), mine.word()), Read<Bucket>(at));
  if (word != held.word()) co_return Locked();
  bucket.head = mine;
  if (held.takeovers() == Head::Takeovers::kMax) {
    // There is no further version to skip to (reference/4), so the image that may be there is cleared first,
    // by a trip of its own: no READ of a bucket lasts as long as two trips.
    const Image nothing{};
    co_await op.InOrder(WriteObject(ImageAt(at, 1 - held.image()), nothing));
  }
  co_return bucket;
}

// Gives the lock back with nothing changed. An owner that has taken the lock over commits the image that
// counts once more: so the versions that its predecessors may have used are behind it.
Task<Done> Table::GiveBack(Op& op, FarAddr at, const Bucket& bucket) {
  const Image* current = CurrentImage(bucket);
  if (bucket.head.takeovers() > 0 && current != nullptr) {
    Draft nothing;
    co_await Commit(op, at, bucket.head, *current, nothing);
  } else {
    co_await Unlock(op, at, bucket.head);
  }
  co_return Done{};
}

Task<Done> Table::Unlock(Op& op, FarAddr at, Head held) {
  if (Mutant(kUnlockByWrite)) {
    const uint64_t free = held.WithOwner(Owner()).word();
    co_await op.InOrder(WriteObject(at, free));
    co_return Done{};
  }
  co_await op.InOrder(Cas(at, held.word(), held.WithOwner(Owner()).word()));
  co_return Done{};
}

}  // namespace farside::index::reference
