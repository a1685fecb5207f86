// Memory for merges: the part of Merger that knows what to do in a full pool.
//
// Deletes make room, so they must not need any; but a merge writes a new MainSegment before it retires the
// old one. So a table has a spare one on each node, without entries. A client that deletes takes it if there
// is no other memory, by a CAS of the word in the root that names it. Behind the merges that follow there is
// memory again, and that client makes a new spare.
#include "index/sephash/main_room.h"
#include "index/sephash/merger.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Order;
using fabric::Read;

Task<Done> Merger::FetchRoom(const Plan& plan, uint64_t words, MainRoom& room) {
  const uint64_t pages = plan.at.shape().PagesOf(words);
  if (pages > MetaWord::MainPages::kMax)
    co_return Error(ErrorCode::kOutOfMemory, "too many keys have the same hash; use other keys");
  const Result<Done> fetched =
      co_await room.Fetch(plan.at.op, pool_.allocator(plan.at.node()), pages).Outcome();
  if (fetched.ok()) co_return Done{};
  if (fetched.error().code() != ErrorCode::kOutOfMemory || !plan.frees) co_return fetched.error();
  const bool taken = co_await TakeSpare(plan, pages, room);
  if (!taken) co_return fetched.error();
  co_return Done{};
}

Task<bool> Merger::TakeSpare(const Plan& plan, uint64_t pages, MainRoom& room) {
  const Access& at = plan.at;
  const FarAddr word = at.directory.root() + offsetof(Root, spare);
  const uint64_t spare = co_await at.op.InOrder(Read<uint64_t>(word));
  spare_missing_ |= spare == 0;
  if (spare == 0 || pages > Shape::kUsualPages) co_return false;
  const FarAddr spare_at(at.node(), spare);
  const MainHead head = co_await reader_.ReadSpare(at.op, spare_at);
  const uint64_t found = co_await at.op.InOrder(Cas(word, spare, 0));
  if (found != spare) co_return false;
  spare_missing_ = true;
  room.Adopt(pool_.allocator(at.node()), spare_at, head.pages, pages);
  co_return true;
}

Task<Done> Merger::RefillSpare(Access at) {
  MainRoom room(at.shape(), at.node());
  co_await room.Fetch(at.op, pool_.allocator(at.node()), Shape::kUsualPages);
  const MainImage image = EncodeMain(at.shape(), MainContent(), room.numbers());
  const FarAddr word = at.directory.root() + offsetof(Root, spare);
  fabric::Batch trip(at.op, Order::kInOrder);
  room.AddWrites(trip, image);
  const size_t cas = trip.Add(Cas(word, 0, room.at().offset));
  room.Publish();
  co_await trip;
  if (trip.Old(cas) != 0) room.Unpublish();
  spare_missing_ = false;
  co_return Done{};
}

}  // namespace farside::index::sephash
