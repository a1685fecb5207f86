// The benchmark's own promises: it does what it counts, it notices wrong values, and a simulated run is the
// same again.
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/bench/run.h"
#include "tools/bench/world.h"
#include "tools/json.h"

namespace farside::tools {
namespace {

using fabric::OpKind;
using testing::HasSubstr;
using workload::Action;

BenchCommand Small(std::string workload, std::string fabric) {
  BenchCommand command;
  command.engine = "reference";
  command.options = {{"buckets", "200"}};
  command.workload = std::move(workload);
  command.fabric = std::move(fabric);
  command.records = 500;
  command.ops = 3000;
  command.warmup = 100;
  return command;
}

Result<BenchRun> RunPlan(const BenchCommand& command) {
  Result<BenchPlan> plan = PlanBench(command);
  if (!plan.ok()) return plan.error();
  return RunBench(*plan, [](std::string_view, uint64_t, uint64_t, std::string_view) {});
}

uint64_t CountOf(const BenchTally& tally, Action action) {
  return tally.latency[static_cast<size_t>(action)].Count();
}

TEST(Bench, EveryWorkloadDoesAsManyOperationsAsItIsAskedFor) {
  // Given every workload, on both fabrics, with several clients of several operations each. When it is run.
  // Expect that operations, latencies and counters agree, without errors, and that all records are there in
  // the end.
  for (const char* fabric : {"embedded", "sim"}) {
    for (const char* workload : {"a", "b", "c", "d", "f"}) {
      BenchCommand command = Small(workload, fabric);
      command.clients = 3;
      command.depth = 4;
      const Result<BenchRun> run = RunPlan(command);
      ASSERT_TRUE(run.ok()) << run.error().ToString();
      const BenchTally& tally = *run->run;
      SCOPED_TRACE(std::string(fabric) + ", " + workload);
      EXPECT_EQ(tally.operations, 3000u);
      EXPECT_EQ(AllLatencies(tally).Count(), 3000u);
      EXPECT_EQ(tally.errors, 0u) << tally.first_problem;
      EXPECT_EQ(run->load->operations, 500u);
      EXPECT_EQ(run->load->errors, 0u) << run->load->first_problem;
      EXPECT_EQ(run->stats.records, run->records);
      const uint64_t searches = tally.counters.at(OpKind::kSearch, fabric::OpOutcome::kDone).operations;
      EXPECT_EQ(searches, CountOf(tally, Action::kRead) + CountOf(tally, Action::kReadModifyWrite));
      EXPECT_GT(tally.ended, tally.began);
    }
  }
}

TEST(Bench, WindowsSayWhenOperationsEndedAndWhenTheTableGrew) {
  // Given a load of a table that has to grow, with windows. When it is run in virtual time. Expect every
  // operation in one of them, none of them after the end, and every step of the growth in order.
  BenchCommand command;
  command.engine = "shard";
  command.workload = "load";
  command.fabric = "sim";
  command.records = 2000;
  command.clients = 3;
  Result<BenchPlan> plan = PlanBench(command);
  ASSERT_TRUE(plan.ok());
  plan->window = std::chrono::microseconds(100);
  const Result<BenchRun> run = RunBench(*plan, [](std::string_view, uint64_t, uint64_t, std::string_view) {});
  ASSERT_TRUE(run.ok()) << run.error().ToString();
  const BenchTally& tally = *run->run;
  EXPECT_EQ(std::accumulate(tally.windows.begin(), tally.windows.end(), uint64_t{0}), 2000u);
  EXPECT_LE((tally.windows.size() - 1) * plan->window, tally.ended - tally.began);
  ASSERT_GE(tally.growth.size(), 3u);
  Nanos last{0};
  for (const auto& [step, at] : tally.growth) {
    EXPECT_GE(at, last) << step;
    last = at;
  }
  EXPECT_LE(last, tally.ended - tally.began);
}

TEST(Bench, TheLoadInsertsEveryRecordOnce) {
  // Given workload load with a number of clients that does not divide that of the records. When it is run.
  // Expect all records, the load as the run, and the memory of the blocks.
  BenchCommand command = Small("load", "sim");
  command.ops.reset();
  command.records = 501;
  command.clients = 4;
  const Result<BenchRun> run = RunPlan(command);
  ASSERT_TRUE(run.ok()) << run.error().ToString();
  EXPECT_EQ(run->load, nullptr);
  EXPECT_EQ(run->run->operations, 501u);
  EXPECT_EQ(run->run->errors, 0u);
  EXPECT_EQ(run->stats.records, 501u);
  EXPECT_EQ(run->memory.block_bytes, 501u * 64);
}

TEST(Bench, RecordsCanBePutInsteadOfInserted) {
  // Given a plan with puts, on both fabrics. When records are loaded and read. Expect all of them, without
  // errors.
  for (const char* fabric : {"embedded", "sim"}) {
    SCOPED_TRACE(fabric);
    BenchCommand command = Small("c", fabric);
    command.engine = "sephash";
    command.options.clear();
    command.clients = 3;
    Result<BenchPlan> plan = PlanBench(command);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    plan->puts = true;
    const Result<BenchRun> run =
        RunBench(*plan, [](std::string_view, uint64_t, uint64_t, std::string_view) {});
    ASSERT_TRUE(run.ok()) << run.error().ToString();
    EXPECT_EQ(run->load->errors, 0u) << run->load->first_problem;
    EXPECT_EQ(run->run->errors, 0u) << run->run->first_problem;
    EXPECT_EQ(run->stats.records, 500u);
    EXPECT_EQ(CountOf(*run->load, Action::kInsert), 500u);
  }
}

TEST(Bench, TripsAndBytesAreThoseOfTheEngine) {
  // Given the reference engine, whose searches read a bucket of 512 bytes and a block. When workload c is run
  // in the simulated cluster. Expect one index trip, two or (if two keys look alike) a little more of all,
  // and those bytes.
  const Result<BenchRun> run = RunPlan(Small("c", "sim"));
  ASSERT_TRUE(run.ok()) << run.error().ToString();
  const std::optional<KindCost> search = CostOf(*run->run, OpKind::kSearch);
  ASSERT_TRUE(search.has_value());
  EXPECT_EQ(search->index_trips, 1);
  EXPECT_NEAR(search->end_to_end_trips, 2, 0.02);
  EXPECT_NEAR(CostOf(*run->run).bytes_read, 512 + 64, 2);
  EXPECT_NEAR(BucketBytes(*run->run), 512, 1);
  EXPECT_FALSE(CostOf(*run->run, OpKind::kUpdate).has_value());
  EXPECT_FALSE(run->model.empty());
  ASSERT_FALSE(run->uses.empty());
  EXPECT_GE(run->uses.front().share, run->uses.back().share);
}

TEST(Bench, ASimulatedRunIsTheSameAgain) {
  // Given a plan for the simulated cluster. When it is run twice, and with another seed. Expect the same
  // JSON, to the last digit, and another one.
  const auto json = [](uint64_t seed) {
    BenchCommand command = Small("a", "sim");
    command.clients = 5;
    command.depth = 3;
    command.compute_nodes = 2;
    command.nodes = 2;
    command.seed = seed;
    const BenchPlan plan = *PlanBench(command);
    BenchResult result;
    result.run = *RunBench(plan, [](std::string_view, uint64_t, uint64_t, std::string_view) {});
    return ToJson(plan, result);
  };
  const std::string once = json(7);
  EXPECT_EQ(json(7), once);
  EXPECT_NE(json(8), once);
}

TEST(Bench, FlushesStandInTheReportIfThereWereAny) {
  // Given a run of an engine that calls no handlers. Expect that the report says nothing of flushes.
  const BenchPlan plan = *PlanBench(Small("a", "sim"));
  BenchResult result;
  result.run = *RunBench(plan, [](std::string_view, uint64_t, uint64_t, std::string_view) {});
  EXPECT_EQ(result.run.flushed, fabric::FlushCounts{});
  EXPECT_EQ(BenchText(plan, result, Paint(false)).find("flushes"), std::string::npos);
  EXPECT_THAT(ToJson(plan, result), HasSubstr(R"("flushes_per_op":null)"));
  // When its 3,000 operations have made 6,000 lines durable. Expect two for each.
  result.run.flushed = {.lines = 6000, .drains = 4500};
  EXPECT_THAT(BenchText(plan, result, Paint(false)),
              HasSubstr("flushes       2.000 lines made durable by an operation, in 1.500 drains\n"));
  EXPECT_THAT(ToJson(plan, result), HasSubstr(R"("flushes_per_op":{"lines":2.0,"drains":1.5})"));
}

TEST(Bench, AFullNodeIsOneClearLine) {
  // Given a region that is too small for the records. When they are loaded. Expect kOutOfMemory, where it
  // happened and what to do, on both fabrics.
  for (const char* fabric : {"embedded", "sim"}) {
    BenchCommand command = Small("a", fabric);
    command.value_size = 100'000;
    command.size = "4MiB";
    command.clients = 2;
    const Result<BenchRun> run = RunPlan(command);
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.error().code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(run.error().message(), HasSubstr("during the load"));
    EXPECT_THAT(run.error().message(), HasSubstr("--size"));
  }
}

TEST(Bench, RawReadsAsMuchAsTheEngine) {
  // Given plans of engines. When raw is planned beside them. Expect buckets of as many lines, within its
  // bounds.
  const BenchPlan plan = *PlanBench(Small("c", "embedded"));
  EXPECT_EQ(PlanRaw(plan, 512.4)->engine_options.at("bucket"), "512");
  EXPECT_EQ(PlanRaw(plan, 0)->engine_options.at("bucket"), "64");
  EXPECT_EQ(PlanRaw(plan, 100'000)->engine_options.at("bucket"), "4096");
  EXPECT_EQ(PlanRaw(plan, 64)->engine_options.at("block"), "64");
  EXPECT_FALSE(PlanRaw(plan, 64)->verifies());
}

// ---- verification ----------------------------------------------------------------------------------------

class BenchVerification : public testing::Test {
 protected:
  // Runs a phase of reads on a table of this engine, into which `loaded` records were put.
  BenchTally ReadAfterLoading(const std::string& engine, const index::OptionMap& options, uint64_t loaded,
                              uint64_t records) {
    BenchCommand command = Small("c", "sim");
    command.engine = engine;
    command.options = options;
    const BenchPlan plan = *PlanBench(command);
    const std::unique_ptr<BenchWorld> world = std::move(*MakeBenchWorld(plan));
    std::vector<std::unique_ptr<BenchClient>> clients;
    clients.push_back(std::make_unique<BenchClient>(0, std::move(*world->Join())));
    workload::Frontier frontier(records);
    for (const char* mix : {"load", "c"}) {
      BenchPhase::Options phase_options;
      phase_options.shape.mix = *workload::FindMix(mix);
      phase_options.shape.distribution = workload::Distribution::kUniform;
      phase_options.shape.records = records;
      phase_options.operations = phase_options.shape.mix.is_load ? loaded : kReads;
      BenchPhase phase(phase_options, frontier);
      EXPECT_TRUE(world->Run(clients, phase, 1, [](uint64_t) {}).ok());
      EXPECT_FALSE(phase.error().has_value());
    }
    return clients[0]->tally();
  }

  static constexpr uint64_t kReads = 1000;
};

TEST_F(BenchVerification, WhatWasPutIsFound) {
  // Given a table that keeps what it gets. When all of it is read. Expect no error.
  const BenchTally tally = ReadAfterLoading("reference", {{"buckets", "10"}}, 20, 20);
  EXPECT_EQ(tally.operations, kReads);
  EXPECT_EQ(tally.errors, 0u) << tally.first_problem;
}

TEST_F(BenchVerification, AWrongValueIsAnError) {
  // Given raw with one slot, in which two keys overwrite each other. When both are read. Expect that the
  // reads of the first are errors, with a message that shows the key.
  const BenchTally tally = ReadAfterLoading("raw", {{"records", "1"}}, 2, 2);
  EXPECT_NEAR(static_cast<double>(tally.errors), kReads / 2.0, 100);
  EXPECT_THAT(tally.first_problem, HasSubstr("has a value that was never written"));
}

TEST_F(BenchVerification, AMissingKeyIsAnError) {
  // Given a table of which half of the records were never put. When all are read. Expect that half of the
  // reads are errors.
  const BenchTally tally = ReadAfterLoading("reference", {{"buckets", "10"}}, 10, 20);
  EXPECT_NEAR(static_cast<double>(tally.errors), kReads / 2.0, 100);
  EXPECT_THAT(tally.first_problem, HasSubstr("was inserted and is absent"));
}

}  // namespace
}  // namespace farside::tools
