// Lookups are bounded: wherever the processor of a node stops in the middle of a handler, a lookup ends after
// a number of trips that is known before.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/continuity/continuity.h"
#include "index/continuity/segment.h"
#include "tests/engines/continuity/scenarios.h"
#include "tests/support/table_world.h"

namespace farside::index::continuity {
namespace {

constexpr uint64_t kMostSteps = 40;
const OptionMap kOptions{{"pairs", "4"}};

class Member : public TableMember {
 public:
  explicit Member(TableWorld& world) : TableMember(world, "continuity", MakeContinuityEngine, kOptions) {}

  // One look for a key's pair, as every attempt of a lookup makes it first.
  Task<Done> Look(uint64_t indicator) {
    fabric::Op op(client(), fabric::OpKind::kSearch);
    PairImage image;
    co_await ReadPair(op, fabric::FarAddr(fabric::NodeId{0}, indicator - kIndicatorAt), Part::kEven, image);
    co_return Done{};
  }
};

// What a task costs in trips, and whether it succeeded.
struct Ended {
  uint64_t trips = 0;
  bool ok = false;
  ErrorCode code = ErrorCode::kContended;
};
template <class T>
Ended Measure(TableMember& member, Task<T> task) {
  const uint64_t before = member.client().counters().Total().end_to_end_trips;
  const Result<T> result = member.Try(std::move(task));
  return {.trips = member.client().counters().Total().end_to_end_trips - before,
          .ok = result.ok(),
          .code = result.ok() ? ErrorCode::kContended : result.error().code()};
}

// A world in which a handler stands still after so many steps of an update of "a".
struct Stopped {
  explicit Stopped(uint64_t steps, bool ordered_reads, Nanos duration)
      : world({.durable = true, .chaos = ChaosOf(ordered_reads)}), writer(world), reader(world) {
    world.beats = false;
    writer.Now(writer.Put("a", "old"));
    writer.Now(writer.Put(elsewhere(), "v"));
    reader.Now(reader.Get("a"));  // knows the root
    update.emplace(writer.Update("a", "new"));
    stopped = StopHandlerAt(world, writer, *update, steps, duration);
  }
  ~Stopped() {
    update.reset();
    EXPECT_EQ(world.problem, "");
  }
  static fabric::sim::Chaos ChaosOf(bool ordered_reads) {
    fabric::sim::Chaos chaos = fabric::sim::Chaos::Calm();
    chaos.ordered_reads = ordered_reads;
    return chaos;
  }
  // A key of another pair.
  static std::string elsewhere() {
    const auto pair = [](const std::string& key) { return HomeOf(Hash64(AsBytes(key)), 4).pair; };
    for (int i = 0;; ++i) {
      if (pair(fmt::format("b{}", i)) != pair("a")) return fmt::format("b{}", i);
    }
  }

  TableWorld world;
  Member writer;
  Member reader;
  std::optional<Task<bool>> update;
  bool stopped = false;
};

TEST(ContinuityBounded, WhereverAHandlerStops_AnAttemptEnds) {
  // Given a handler that stops between any two of its steps, for long
  // When the pair is read that it changes
  // Expect one trip, or kContended after kMostLooks trips; three times as many where READs have no order, and
  // a fourth READ is a trip more
  for (const bool ordered : {true, false}) {
    uint64_t contended = 0;
    uint64_t step = 0;
    for (; step < kMostSteps; ++step) {
      Stopped scene(step, ordered, std::chrono::milliseconds(50));
      if (!scene.stopped) break;
      const uint64_t indicator = IndicatorOf(scene.world, scene.reader, "a");
      const Ended look = Measure(scene.reader, scene.reader.Look(indicator));
      if (look.ok) {
        EXPECT_EQ(look.trips, ordered ? 1u : 3u) << step;
        continue;
      }
      ++contended;
      EXPECT_EQ(look.code, ErrorCode::kContended);
      // The first look asks for no handler; all others do.
      EXPECT_EQ(look.trips, ordered ? kMostLooks : 3u + 4 * (kMostLooks - 1)) << step;
    }
    EXPECT_GE(step, 13u) << "stores, flushes and drains of an update";
    EXPECT_GE(contended, 8u) << "while the sequence is odd";
    RecordProperty(ordered ? "steps" : "steps without order", static_cast<int>(step));
    RecordProperty(ordered ? "contended" : "contended without order", static_cast<int>(contended));
  }
}

TEST(ContinuityBounded, OtherPairsAreNotAffected) {
  // Given a handler that stops between any two of its steps
  // When a key of another pair is read
  // Expect one trip, as ever
  for (uint64_t step = 0; step < kMostSteps; ++step) {
    Stopped scene(step, true, std::chrono::milliseconds(50));
    if (!scene.stopped) break;
    const Ended get = Measure(scene.reader, scene.reader.Get(Stopped::elsewhere()));
    EXPECT_TRUE(get.ok);
    EXPECT_EQ(get.trips, 1u) << step;
  }
}

TEST(ContinuityBounded, AWholeLookupEndsAfterItsLeases) {
  // Given a handler that stands still for longer than a lookup may wait, and clients that give signs of life
  // When its key is read
  // Expect kContended after 16 leases of attempts and pauses, and not before; and the value once it goes on
  constexpr Nanos kLease = std::chrono::milliseconds(10);
  Stopped scene(4, true, 40 * kLease);
  ASSERT_TRUE(scene.stopped);
  scene.world.beats = true;
  const Nanos began = scene.world.fabric.Now();
  const Ended get = Measure(scene.reader, scene.reader.Get("a"));
  const Nanos waited = scene.world.fabric.Now() - began;
  EXPECT_FALSE(get.ok);
  EXPECT_EQ(get.code, ErrorCode::kContended);
  EXPECT_GE(waited, 16 * kLease);
  EXPECT_LT(waited, 18 * kLease);
  RecordProperty("trips of a lookup that gives up", std::to_string(get.trips));
  // Attempts of kMostLooks trips with a pause between them that grows up to a lease / 64; and signs of life.
  EXPECT_GT(get.trips, 10'000u);
  EXPECT_LT(get.trips, 20'000u);
  scene.world.Drive([&] { return scene.update->done(); });
  EXPECT_EQ(scene.reader.Now(scene.reader.Get("a")), "new");
}

TEST(ContinuityBounded, TheHandlerOfADeadClient_DelaysALookupForALease) {
  // Given a handler that stands still, and a client that has asked for it and gives no signs of life
  // When its key is read
  // Expect that the client is cut off within two leases, which ends what the node does for it, and the value
  constexpr Nanos kLease = std::chrono::milliseconds(10);
  Stopped scene(4, true, 40 * kLease);
  ASSERT_TRUE(scene.stopped);
  const Nanos began = scene.world.fabric.Now();
  EXPECT_EQ(scene.reader.Now(scene.reader.Get("a")), "new");
  EXPECT_LT(scene.world.fabric.Now() - began, 2 * kLease);
}

TEST(ContinuityBounded, APairThatWasLeftOdd_TwoTrips) {
  // Given a pair whose sequence is odd, and no handler that changes it: a power cut has left it so
  // When its key is read
  // Expect one look that finds it odd, and one that finds it odd still and no handler at it
  for (const bool ordered : {true, false}) {
    TableWorld world({.chaos = Stopped::ChaosOf(ordered)});
    Member member(world);
    member.Now(member.Put("a", "v"));
    std::byte* indicator = world.memory().data() + IndicatorOf(world, member, "a");
    StoreU64(indicator, Indicator(LoadU64(indicator)).Begun().word());
    const Ended get = Measure(member, member.Get("a"));
    EXPECT_TRUE(get.ok);
    EXPECT_EQ(get.trips, ordered ? 2u : 3u + 4u);
    // A change makes it even.
    member.Now(member.Update("a", "w"));
    EXPECT_EQ(Measure(member, member.Get("a")).trips, ordered ? 1u : 3u);
    EXPECT_EQ(world.problem, "");
  }
}

}  // namespace
}  // namespace farside::index::continuity
