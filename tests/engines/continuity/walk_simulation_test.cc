// Cursors, statistics, walks and verification of a continuity table that handlers change meanwhile.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "index/continuity/continuity.h"
#include "tests/engines/continuity/scenarios.h"
#include "tests/support/table_world.h"

namespace farside::index::continuity {
namespace {

// Longer than the looks of one attempt, and shorter than an operation waits.
constexpr Nanos kStandsStill = std::chrono::milliseconds(5);

// A handler stands still after each of its steps in turn, in a change of one of some keys, and a reader does
// something meanwhile.
template <class Do>
void AtEveryStepOfAHandler(Do meanwhile) {
  uint64_t step = 0;
  for (bool stopped = true; stopped; ++step) {
    SCOPED_TRACE(step);
    ASSERT_LT(step, 100u);
    TableWorld world({.durable = true});
    const OptionMap options{{"pairs", "2"}};
    TableMember writer(world, "continuity", MakeContinuityEngine, options);
    TableMember reader(world, "continuity", MakeContinuityEngine, options);
    for (int i = 0; i < 8; ++i) writer.Now(writer.Put(fmt::format("k{}", i), "old"));
    Task<bool> update = writer.Update("k0", "new");
    stopped = StopHandlerAt(world, writer, update, step, kStandsStill);
    meanwhile(reader);
    world.Drive([&] { return update.done(); });
    EXPECT_EQ(world.problem, "");
  }
  EXPECT_GE(step, 5u);
}

TEST(ContinuityWalks, ACursor_WaitsForAHandlerThatStandsStill) {
  // Given a handler that stands still between any two of its steps, for longer than sixteen looks take
  // When a cursor goes through the table
  // Expect every record once
  AtEveryStepOfAHandler([](TableMember& reader) {
    const std::multimap<std::string, std::string> all = reader.Now(reader.List());
    EXPECT_EQ(all.size(), 8u);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(all.count(fmt::format("k{}", i)), 1u) << i;
  });
}

TEST(ContinuityWalks, StatisticsWalksAndVerification_WaitForAHandlerThatStandsStill) {
  // Given a handler that stands still between any two of its steps, for longer than sixteen looks take
  // When the statistics are asked for, the table is walked through, or it is verified
  // Expect that it succeeds, with every record
  AtEveryStepOfAHandler([](TableMember& reader) { EXPECT_EQ(reader.Now(reader.Stats()).records, 8u); });
  AtEveryStepOfAHandler([](TableMember& reader) {
    pool::Reached reached;
    reader.Now(reader.Walk(reached));
  });
  AtEveryStepOfAHandler([](TableMember& reader) { reader.Now(reader.Verify()); });
}

TEST(ContinuityWalks, ACursorThatGaveUp_GoesOnWhereItWas) {
  // Given a handler that stands still in a pair for longer than a page may wait
  // When a page of a cursor ends with kContended, and is asked for again when the handler has gone on
  // Expect that nothing was appended by the failed one, and every record once, all told
  TableWorld world({.durable = true});
  const OptionMap options{{"pairs", "1"}};
  TableMember writer(world, "continuity", MakeContinuityEngine, options);
  TableMember reader(world, "continuity", MakeContinuityEngine, options);
  for (int i = 0; i < 8; ++i) writer.Now(writer.Put(fmt::format("k{}", i), "old"));
  Task<bool> update = writer.Update("k0", "new");
  ASSERT_TRUE(StopHandlerAt(world, writer, update, 3, std::chrono::seconds(1)));
  Cursor cursor;
  const Result<std::vector<Record>> failed = reader.Try(reader.Page(cursor));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), ErrorCode::kContended);
  EXPECT_EQ(cursor.position, Cursor().position);
  world.Drive([&] { return update.done(); });
  EXPECT_EQ(reader.Now(reader.Page(cursor)).size(), 8u);
  EXPECT_TRUE(reader.Now(reader.Page(cursor)).empty());
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::continuity
