#include "tests/pool/room_scenarios.h"

#include <functional>
#include <vector>

#include "pool/room.h"

namespace farside::pool {

namespace {

constexpr char kFull[] = "a client says that the pool is full, and it is not";

// Takes blocks of the largest size until there is no room for one more.
Task<std::vector<fabric::FarAddr>> TakeAll(fabric::Op& op, Allocator& allocator, uint64_t bytes) {
  std::vector<fabric::FarAddr> blocks;
  while (true) {
    const Result<fabric::FarAddr> block =
        co_await allocator.Allocate(op, bytes, BlockUse::kStructure).Outcome();
    if (!block.ok()) co_return blocks;
    blocks.push_back(*block);
  }
}

// As a session does that is idle (store/background_sync.cc).
Task<Done> Rest(fabric::Op& op, PoolClient& pool) {
  co_await pool.GoOffline(op);
  co_await pool.KeepUp(op);
  if (!pool.OwesRoom()) co_return Done{};
  co_await pool.Disown(op);
  co_await pool.GoOffline(op);
  co_await pool.KeepUp(op);
  co_return Done{};
}

struct Two {
  explicit Two() : run(PoolCalm()), idle(run), starving(run) {}

  // All chunks are the idle client's; if `frees`, with nothing in them.
  bool Begin(bool frees) {
    Allocator& allocator = idle.pool().allocator(ManualClient::kNode);
    const uint64_t largest = allocator.carving().classes().largest();
    const auto blocks = idle.Try([&](fabric::Op& op) { return TakeAll(op, allocator, largest); });
    if (!blocks.ok() || blocks->empty()) return false;
    for (const fabric::FarAddr block : *blocks) {
      if (frees) allocator.FreeUnpublished(block, largest);
    }
    const Result<bool> offline = idle.GoOffline();
    return offline.ok() && *offline;
  }
  // The other one searches for room, as a session does. The idle one keeps up eight times per lease.
  std::string Search(const std::function<bool()>& keep_up) {
    RoomSearch search(starving.pool());
    Nanos due = starving.client().Now() + kTestLease / 8;
    while (true) {
      const Result<Done> published = starving.Publish(1);
      if (published.ok()) return "";
      if (published.error().code() != ErrorCode::kOutOfMemory) return published.error().ToString();
      if (search.concluded()) return kFull;
      if (!starving.Try([&](fabric::Op& op) { return search.Round(op); }).ok()) return "a search has failed";
      if (!search.concluded()) starving.Wait(kTestLease / 64);
      if (!starving.ComeOnline().ok()) return "a client cannot come back";
      if (search.concluded() || starving.client().Now() < due) continue;
      if (!keep_up()) return "the idle client is cut off";
      due = starving.client().Now() + kTestLease / 8;
    }
  }

  PoolRun run;
  ManualClient idle;
  ManualClient starving;
};

}  // namespace

std::string AnIdleClientOwnsEmptyChunks() {
  Two two;
  if (!two.idle.Join().ok() || !two.starving.Join().ok()) return "a client cannot join";
  if (!two.Begin(/*frees=*/true)) return "there is nothing to give back";
  return two.Search([&] { return two.idle.KeepUp().ok(); });
}

std::string AnIdleClientOwnsASparseChunk() {
  Two two;
  if (!two.idle.Join().ok() || !two.starving.Join().ok()) return "a client cannot join";
  if (!two.idle.Publish(0).ok() || !two.Begin(/*frees=*/false)) return "there is nothing to give back";
  return two.Search(
      [&] { return two.idle.Try([&](fabric::Op& op) { return Rest(op, two.idle.pool()); }).ok(); });
}

}  // namespace farside::pool
