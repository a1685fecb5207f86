// A client that sleeps past its lease, and wakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/pool/catalog/tables_run.h"
#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

using fabric::Op;
using fabric::OpKind;
using testing::AnyOf;
using testing::HasSubstr;

// What clients that were cut off have been told: first, and then when they tried to do harm.
struct Told {
  std::vector<Error> first;
  std::vector<Result<Done>> later;
};

// Long enough for a client that has slept through most of it to be missed.
Task<Done> UseTables(Op& op, PoolRun& run, std::string name) {
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, op.client(), run.geometry());
  const Nanos enough = op.client().Now() + 4 * kTestLease;
  co_await client->Create(op, name);
  co_await client->Create(op, "more " + name);
  co_await client->Drop(op, name);
  while (op.client().Now() < enough) {
    co_await client->Maintain(op);
    co_await op.Pause(kTestLease / 8);
  }
  co_await client->Leave(op);
  co_return Done{};
}

// Any byte of this that landed would be seen: the chunk table begins there.
Task<Done> Overwrite(Op& op, PoolRun& run) {
  std::array<std::byte, kLine> garbage;
  garbage.fill(std::byte{0xff});
  co_await op.InOrder(fabric::Write(fabric::FarAddr(kTablesNode, run.geometry().chunk_table()), garbage));
  co_return Done{};
}

Task<Done> UseTablesAndTell(fabric::Client& client, PoolRun& run, std::string name, Told& told) {
  Op op(client, OpKind::kMaintenance);
  const Result<Done> end = co_await UseTables(op, run, std::move(name)).Outcome();
  if (end.ok()) co_return Done{};
  told.first.push_back(end.error());
  const Result<Done> late = co_await Overwrite(op, run).Outcome();
  told.later.push_back(late);
  co_return Done{};
}

// Two clients, one of which sleeps for five leases at one of its verbs.
RunOutcome RunWithASleeper(fabric::sim::SimOptions options, Told& told) {
  PoolRun run(std::move(options), TablesGeometry());
  for (const char* name : {"first", "second"}) {
    run.StartClient(
        [&run, name, &told](fabric::Client& client) { return UseTablesAndTell(client, run, name, told); });
  }
  run.Drive();
  RunOutcome outcome = run.EndOfScripts();
  if (run.problem().empty()) {
    run.StartClient([&run](fabric::Client& client) { return PutInOrder(client, run); });
    run.Drive();
  }
  if (run.problem().empty()) {
    run.StartClient([&run](fabric::Client& client) { return CheckEverything(client, run); });
    run.Drive();
  }
  outcome.problem = run.problem();
  return outcome;
}

TEST(PoolSleeper, SleepsPastItsLeaseAtAnyVerb_IsToldAndDoesNoHarm) {
  // Given two clients that create and drop tables, allocate and free.
  // When one of them falls asleep for five leases, before or after any verb, and wakes.
  // Expect that it is told that it was taken for dead, and what to do; that what it posts then is refused;
  // and that fsck finds every byte to be reachable or free, when a client has put things in order.
  constexpr std::array kinds = {fabric::sim::FaultKind::kSleepBefore, fabric::sim::FaultKind::kSleepAfter};
  Told told;
  for (uint64_t seed = 1; seed <= 2 / std::min<uint64_t>(kFewer, 2); ++seed) {
    bool more = true;
    for (uint64_t verb = 0; more; verb += kFewer) {
      more = false;
      for (const fabric::sim::FaultKind kind : kinds) {
        fabric::sim::SimOptions options = PoolChaos(seed, /*faults=*/false);
        options.fault = fabric::sim::Fault{verb, kind};
        const RunOutcome outcome = RunWithASleeper(options, told);
        ASSERT_EQ(outcome.problem, "") << "seed " << seed << ", verb " << verb << ", " << Name(kind);
        more |= outcome.script_verbs > verb;
      }
    }
  }
  EXPECT_GT(told.first.size(), 300u / kFewer);
  uint64_t unchanged = 0;
  for (const Error& error : told.first) {
    if (error.code() == ErrorCode::kFenced) {
      ++unchanged;
      ASSERT_THAT(error.message(), HasSubstr("taken for dead"));
      ASSERT_THAT(error.message(), HasSubstr("reconnect as a new client"));
    } else {
      // A part of the operation had landed before the fence.
      ASSERT_EQ(error.code(), ErrorCode::kOutcomeUnknown) << error.ToString();
      ASSERT_THAT(error.message(), AnyOf(HasSubstr("this client was fenced"), HasSubstr("taken for dead")));
      ASSERT_THAT(error.message(), HasSubstr("reconnect"));
    }
  }
  EXPECT_GT(unchanged, told.first.size() / 2);
  for (const Result<Done>& late : told.later) {
    ASSERT_FALSE(late.ok());
    ASSERT_EQ(late.error().code(), ErrorCode::kFenced);
    ASSERT_THAT(late.error().message(), HasSubstr("taken for dead"));
  }
}

}  // namespace
}  // namespace farside::pool
