#include "tests/pool/room_scenarios.h"

#include <algorithm>
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

// One round of every search, as tasks of one client make them.
Task<Done> RoundsTogether(fabric::Op& op, std::vector<RoomSearch>& searches) {
  std::vector<Task<Done>> rounds;
  for (RoomSearch& search : searches) {
    if (!search.concluded()) rounds.push_back(search.Round(op));
  }
  for (Task<Done>& round : rounds) round.Start();
  for (Task<Done>& round : rounds) {
    while (!round.done()) co_await op.Pause(Nanos(1000));
    const Result<Done> ended = round.TakeResult();
    if (!ended.ok()) co_return ended.error();
  }
  co_return Done{};
}

struct Two {
  explicit Two(Nanos time = kTestLease)
      : lease(time), run(PoolCalm()), idle(run, time), starving(run, time) {}

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
  // The other one searches for room, as a session does, and by as many tasks at once; it gives up with the
  // first. The idle one keeps up eight times per lease.
  std::string Search(const std::function<bool()>& keep_up, size_t tasks = 1) {
    std::vector<RoomSearch> searches(tasks, RoomSearch(starving.pool()));
    const auto concluded = [&searches] {
      return std::any_of(searches.begin(), searches.end(),
                         [](const RoomSearch& search) { return search.concluded(); });
    };
    Nanos due = starving.client().Now() + lease / 8;
    while (true) {
      const Result<Done> published = starving.Publish(1);
      if (published.ok()) return "";
      if (published.error().code() != ErrorCode::kOutOfMemory) return published.error().ToString();
      if (concluded()) return kFull;
      if (!starving.Try([&](fabric::Op& op) { return RoundsTogether(op, searches); }).ok())
        return "a search has failed";
      if (!concluded()) starving.Wait(lease / 64);
      if (!starving.ComeOnline().ok()) return "a client cannot come back";
      if (concluded() || starving.client().Now() < due) continue;
      if (!keep_up()) return "the idle client is cut off";
      due = starving.client().Now() + lease / 8;
    }
  }

  const Nanos lease;
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

std::string TasksSearchTogether() {
  Two two(100 * kTestLease);  // many rounds before an idle client keeps up
  if (!two.idle.Join().ok() || !two.starving.Join().ok()) return "a client cannot join";
  if (!two.idle.Publish(0).ok() || !two.Begin(/*frees=*/false)) return "there is nothing to give back";
  const auto rest = [&] {
    return two.idle.Try([&](fabric::Op& op) { return Rest(op, two.idle.pool()); }).ok();
  };
  return two.Search(rest, /*tasks=*/3);
}

}  // namespace farside::pool
