// Memory for merges: the part of Merger that knows what to do in a full pool.
//
// Deletes make room, so they must not need any; but a merge writes a new MainSegment before it retires the
// old one. So a table has a spare MainSegment, which a client that deletes takes if there is no other memory,
// by a CAS of the word in the root that names it. The first merge behind it gives back what it had replaced;
// from then on there is memory, and the client makes a new spare.
#include "index/kit/unpublished.h"
#include "index/sephash/merger.h"
#include "index/sephash/mutants.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Read;

Task<Done> Merger::FetchRoom(const Plan& plan, uint64_t bytes, Unpublished& room) {
  if (room.Reserve(pool_.allocator(plan.at.node()), bytes)) co_return Done{};
  const Result<Done> fetched = co_await room.FetchRoom(plan.at.op).Outcome();
  if (fetched.ok()) co_return Done{};
  if (fetched.error().code() != ErrorCode::kOutOfMemory || !plan.frees) co_return fetched.error();
  const bool taken = co_await TakeSpare(plan, bytes, room);
  if (!taken) co_return fetched.error();
  co_return Done{};
}

Task<bool> Merger::TakeSpare(const Plan& plan, uint64_t bytes, Unpublished& room) {
  const Access& at = plan.at;
  const FarAddr spare_at = at.directory.root() + offsetof(Root, spare);
  const DroppedBlock spare(co_await at.op.InOrder(Read<uint64_t>(spare_at)));
  spare_missing_ |= spare.offset() == 0;
  if (spare.offset() == 0 || spare.bytes() < bytes) co_return false;
  const uint64_t found = co_await at.op.InOrder(Cas(spare_at, spare.word(), 0));
  if (found != spare.word() && !Mutant(kSpareTakenTwice)) co_return false;
  spare_missing_ = true;
  room.Adopt(pool_.allocator(at.node()), FarAddr(at.node(), spare.offset()), spare.bytes());
  co_return true;
}

Task<Done> Merger::RefillSpare(Access at) {
  Unpublished room;
  if (!room.Reserve(pool_.allocator(at.node()), at.shape().most_main_bytes())) co_await room.FetchRoom(at.op);
  const DroppedBlock spare(room.at().offset, room.bytes());
  room.Publish();
  const uint64_t found =
      co_await at.op.InOrder(Cas(at.directory.root() + offsetof(Root, spare), 0, spare.word()));
  if (found != 0) room.Unpublish();
  spare_missing_ = false;
  co_return Done{};
}

}  // namespace farside::index::sephash
