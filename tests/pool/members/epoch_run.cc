#include "tests/pool/members/epoch_run.h"

#include <deque>
#include <vector>

namespace farside::pool {

namespace {

constexpr uint64_t kEpochRoot = 128 * 1024;

constexpr uint64_t kEpochCells = kEpochRoot + kLine;

// The root: which cell counts, and the id that stands in it.
struct EpochRoot {
  uint64_t word = 0;
  uint64_t cell() const { return word & 0xffff; }
  uint64_t id() const { return word >> 16; }
  static EpochRoot Of(uint64_t cell, uint64_t id) { return EpochRoot{id << 16 | cell}; }
};

struct EpochScenario {
  PoolRun& run;
  Publish publish;
  uint64_t next_id = 1;
  uint64_t cells = 1;  // cell 0 holds id 0 and belongs to no client
  uint64_t reuses = 0;
};

fabric::FarAddr CellAt(const Membership& member, uint64_t cell) {
  return member.At(kEpochCells + cell * kLine);
}

struct RetiredCell {
  uint64_t cell = 0;
  bool stamped = false;
  uint64_t stamp = 0;
};

// Publishes with no operation in flight; what was retired before gets the epoch that is read.
Task<Done> SyncAndReclaim(fabric::Op& op, Membership& member, EpochScenario& scenario,
                          std::deque<RetiredCell>& retired, std::vector<uint64_t>& free) {
  const uint64_t known = member.known_epoch();
  co_await member.Sync(op, known, known, /*raise=*/true);
  for (RetiredCell& cell : retired) {
    if (!cell.stamped) cell = RetiredCell{cell.cell, true, member.known_epoch()};
  }
  const RegistryView view = co_await member.LookAround(op);
  while (!retired.empty() && retired.front().stamp < view.safe_epoch) {
    free.push_back(retired.front().cell);
    retired.pop_front();
    ++scenario.reuses;
  }
  co_return Done{};
}

Task<Done> ReplaceCells(Membership& member, EpochScenario& scenario, int& left) {
  std::deque<RetiredCell> retired;
  std::vector<uint64_t> free = {scenario.cells++, scenario.cells++};
  while (left > 0) {
    fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
    co_await SyncAndReclaim(op, member, scenario, retired, free);
    if (free.empty()) {
      co_await op.Pause(Nanos(2000));
      continue;
    }
    const uint64_t id = scenario.next_id++;
    const uint64_t mine = free.back();
    co_await op.InOrder(fabric::WriteObject(CellAt(member, mine), id));
    EpochRoot root{co_await op.InOrder(fabric::Read<uint64_t>(member.At(kEpochRoot)))};
    const EpochRoot desired = EpochRoot::Of(mine, id);
    const uint64_t old = co_await op.InOrder(fabric::Cas(member.At(kEpochRoot), root.word, desired.word));
    if (old != root.word) continue;
    free.pop_back();
    retired.push_back(RetiredCell{root.cell(), false, 0});
    --left;
  }
  co_return Done{};
}

Task<Done> FollowRoot(Membership& member, EpochScenario& scenario, int& left) {
  while (left-- > 0) {
    fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
    const uint64_t began = member.known_epoch();
    const EpochRoot root{co_await op.InOrder(fabric::Read<uint64_t>(member.At(kEpochRoot)))};
    for (int i = 0; i < 3; ++i) {
      const uint64_t publish = scenario.publish == Publish::kNewest ? member.known_epoch() : began;
      co_await member.Sync(op, publish, publish, /*raise=*/true);
      co_await op.Pause(Nanos(1000));
    }
    const uint64_t id = co_await op.InOrder(fabric::Read<uint64_t>(CellAt(member, root.cell())));
    if (id != root.id()) scenario.run.Problem("a reader was pointed to a cell that was used again");
    // The operation has ended.
    const uint64_t known = member.known_epoch();
    co_await member.Sync(op, known, known, /*raise=*/false);
  }
  co_return Done{};
}

}  // namespace

EpochOutcome RunEpochs(fabric::sim::SimOptions options, Publish publish, int writers, int readers) {
  PoolRun run(std::move(options));
  EpochScenario scenario{run, publish};
  std::list<int> left(static_cast<size_t>(writers + readers), 12);
  int index = 0;
  for (int& mine : left) {
    if (index++ < writers) {
      run.Start([&](Membership& member) { return ReplaceCells(member, scenario, mine); });
    } else {
      run.Start([&](Membership& member) { return FollowRoot(member, scenario, mine); });
    }
  }
  run.Drive();
  return EpochOutcome{run.problem(), scenario.reuses};
}

}  // namespace farside::pool
