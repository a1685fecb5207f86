// A run that has a name can be run again, byte for byte.
#include <gtest/gtest.h>

#include <string>

#include "check/campaign.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"

namespace farside::check {
namespace {

using fabric::sim::Trace;

TEST(Replay, SameRunGivesTheSameBytes) {
  // Given a run with faults by chance, and one with an exact fault.
  // When each runs twice with a trace.
  // Expect identical traces; and different seeds to differ.
  const auto engine = index::reference::MakeReferenceEngine({});
  const auto trace_of = [&](const RunName& run) {
    Trace trace;
    Replay(**engine, {}, run, &trace);
    return trace.ToString();
  };
  for (const char* name : {"17", "17:faults", "17:5:crash-after", "18:9:sleep-before"}) {
    const auto run = RunName::Parse(name);
    ASSERT_TRUE(run.ok());
    const std::string once = trace_of(*run);
    EXPECT_GT(once.size(), 1000u) << name;
    EXPECT_EQ(once, trace_of(*run)) << name;
    EXPECT_EQ(run->ToString(), name);
  }
  EXPECT_NE(trace_of({.seed = 17, .faults = false, .fault = {}}),
            trace_of({.seed = 18, .faults = false, .fault = {}}));
}

TEST(Replay, MalformedNamesAreRefused) {
  for (const char* name : {"", "xyz", "-1", "5:", "5:x", "5:1", "5:1:", "5:1:nosuch",
                           "5:1:crash-after:", "99999999999999999999"}) {
    EXPECT_FALSE(RunName::Parse(name).ok()) << name;
  }
}

}  // namespace
}  // namespace farside::check
