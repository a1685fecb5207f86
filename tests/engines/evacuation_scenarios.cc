#include "tests/engines/evacuation_scenarios.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace farside::index {
namespace {

constexpr fabric::NodeId kNode{0};
constexpr uint64_t kRegionBytes = 512 << 10;
constexpr uint64_t kBlockBytes = 192;

Task<bool> Move(TableMember& member, fabric::FarAddr block, uint64_t bytes) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  std::vector<std::byte> found(bytes);
  co_await op.InOrder(fabric::Read(block, std::span(found)));
  const bool moved = co_await member.index().Touch(op, block, found);
  co_return moved;
}

// All records of the member.
Task<uint64_t> MoveAll(TableMember& member) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  pool::Allocator& allocator = member.pool().allocator(kNode);
  const pool::EvacuationLimits limits{.any_room = true};
  const std::vector<pool::Allocator::Victim> victims = co_await allocator.BeginEvacuation(op, limits);
  uint64_t moved = 0;
  for (const pool::Allocator::Victim& victim : victims) {
    {
      // So that there is room for the copy.
      const pool::PoolClient::Pin pin = member.pool().Begin();
      const fabric::FarAddr room =
          co_await allocator.Allocate(op, victim.block_bytes, pool::BlockUse::kRecords);
      allocator.FreeUnpublished(room, victim.block_bytes);
    }
    for (const fabric::FarAddr block : victim.blocks) {
      const bool one = co_await Move(member, block, victim.block_bytes);
      moved += one ? 1 : 0;
    }
    allocator.EndEvacuation(victim.chunk);
  }
  co_return moved;
}

// Takes all memory that is free, as for other records, and writes to it.
Task<Done> UseWhatIsFree(TableWorld& world, TableMember& member) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  const pool::PoolClient::Pin pin = member.pool().Begin();
  while (true) {
    const Result<fabric::FarAddr> block =
        co_await member.pool().allocator(kNode).Allocate(op, kBlockBytes, pool::BlockUse::kRecords).Outcome();
    if (!block.ok()) break;
    std::memset(world.memory().data() + block->offset, 'o', kBlockBytes);
  }
  co_return Done{};
}

}  // namespace

std::string AReaderStopsWhileItsRecordMoves(const std::string& engine, MakeEngine make_engine) {
  const std::string value(100, 'v');
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    TableWorld world({.region_bytes = kRegionBytes});
    TableMember mover(world, engine, make_engine, {});
    TableMember reader(world, engine, make_engine, {});
    mover.Now(mover.Put("key", value));
    reader.Now(reader.Get("key"));
    Task<std::string> get = reader.Get("key");
    get.Start();
    for (uint64_t step = 0; step < steps && !get.done(); ++step) world.fabric.Step();
    more = !get.done();
    world.fabric.Sleep(reader.client().id(), std::chrono::milliseconds(4));
    if (mover.Now(MoveAll(mover)) != 1) return "the record does not move";
    mover.Now(mover.Maintain());
    mover.Now(UseWhatIsFree(world, mover));
    world.Drive([&get] { return get.done(); });
    if (!get.done()) return "the search does not end";
    const Result<std::string> found = get.TakeResult();
    if (!found.ok()) return fmt::format("after {} steps: {}", steps, found.error().ToString());
    if (*found != value) return fmt::format("after {} steps: found {}", steps, *found);
    if (!world.problem.empty()) return world.problem;
  }
  return "";
}

}  // namespace farside::index
