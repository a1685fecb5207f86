// Lookups are bounded: wherever the processor of a node stops in the middle of a handler, a lookup ends after
// a number of trips that is known before.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/continuity/continuity.h"
#include "index/continuity/segment.h"
#include "index/continuity/slot.h"
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

// ---- every kind of change

// A change, of which the handlers stop, and a key of its pair.
struct ChangeKindOf {
  const char* name;
  OptionMap options;
  std::vector<std::string> before;  // keys that are there
  std::string read;                 // one of them
  std::function<Task<bool>(TableWorld& world, TableMember& writer)> change;
};

const std::string kLongValue(100, 'v');

Task<bool> TouchBlock(TableWorld& world, TableMember& writer, std::string key) {
  // The one record of the table stands in a block.
  const uint64_t pair = IndicatorOf(world, writer, key) - kIndicatorAt;
  std::optional<SlotView> view;
  std::array<Slot, kFirstGroup> slots;
  for (uint32_t slot = 0; slot < kFirstGroup; ++slot) {
    std::memcpy(slots[slot].words.data(), world.memory().data() + pair + SlotInPair(slot), kSlotBytes);
    const std::optional<SlotView> found = DecodeSlot(slots[slot]);
    if (found.has_value() && found->in_block) view = found;
  }
  const auto bytes = world.memory().subspan(view->offset, view->bytes);
  const std::vector<std::byte> block(bytes.begin(), bytes.end());
  fabric::Op op(writer.client(), fabric::OpKind::kMaintenance);
  const fabric::FarAddr at(fabric::NodeId{0}, view->offset);
  const bool moved = co_await writer.index().Touch(op, at, block);
  co_return moved;
}

// Even keys of a table of one pair, of which the n-th goes to this pair when it doubles.
std::string KeyThatGoesTo(uint64_t pair, int number) {
  for (int i = 0;; ++i) {
    const std::string key = KeyOf(false, i);
    if (HomeOf(Hash64(AsBytes(key)), 2).pair == pair && number-- == 0) return key;
  }
}

std::vector<ChangeKindOf> KindsOfChanges() {
  const OptionMap wide{{"pairs", "1"}};
  const std::vector<std::string> full = {KeyThatGoesTo(0, 0), KeyThatGoesTo(1, 0)};
  const std::string third = KeyThatGoesTo(0, 1);
  const auto insert = [third](TableWorld&, TableMember& writer) { return writer.Insert(third, "new"); };
  const auto update = [](TableWorld&, TableMember& writer) { return writer.Update("a", "new"); };
  const auto update_long = [](TableWorld&, TableMember& writer) { return writer.Update("a", kLongValue); };
  const auto remove = [](TableWorld&, TableMember& writer) { return writer.Delete("a"); };
  const auto touch = [](TableWorld& world, TableMember& writer) { return TouchBlock(world, writer, "a"); };
  // The last one begins to grow, moves its pair, makes its change, and ends the growth.
  return {{"insert", wide, full, full[0], insert},
          {"update", wide, {"a"}, "a", update},
          {"update with a block", wide, {"a"}, "a", update_long},
          {"delete", wide, {"a"}, "a", remove},
          {"touch", wide, {"a"}, "a", touch},
          {"insert with a group", OneOfEach(true), full, full[0], insert},
          {"insert with growth", OneOfEach(false), full, full[0], insert}};
}

// The bound of docs/engines/continuity.md. An attempt, with the sync before it, takes 20 trips: the root, a
// pair that was moved, the root again, the looks. Where READs have no order, a look takes 3 or 4.
constexpr uint64_t MostTrips(Nanos lease, bool ordered) {
  const auto attempts = 1064 + static_cast<uint64_t>(lease / std::chrono::microseconds(400));
  return attempts * (ordered ? kMostLooks + 4 : 4 * kMostLooks + 8);
}

TEST(ContinuityBounded, WhereverAHandlerOfAnyChangeStops_AWholeLookupEnds) {
  // Given a handler of any kind of change that stands still between any two of its steps, for longer than a
  // lookup may wait, and clients that give signs of life
  // When a key of that pair is read
  // Expect a value that was there at some moment, or kContended, within the number of trips that is
  // documented
  constexpr Nanos kLease = std::chrono::milliseconds(10);
  for (const bool ordered : {true, false}) {
    for (const ChangeKindOf& kind : KindsOfChanges()) {
      SCOPED_TRACE(std::string(kind.name) + (ordered ? "" : ", without order"));
      uint64_t contended = 0;
      uint64_t most_trips = 0;
      uint64_t step = 0;
      for (bool stopped = true; stopped && step < 200; ++step) {
        TableWorld world({.durable = true, .chaos = Stopped::ChaosOf(ordered)});
        TableMember writer(world, "continuity", MakeContinuityEngine, kind.options);
        TableMember reader(world, "continuity", MakeContinuityEngine, kind.options);
        const std::string old = kind.name == std::string("touch") ? kLongValue : "old";
        for (const std::string& key : kind.before) writer.Now(writer.Put(key, old));
        ASSERT_EQ(reader.Now(reader.Get(kind.read)), old);
        {
          Task<bool> change = kind.change(world, writer);
          stopped = StopHandlerAt(world, writer, change, step, 40 * kLease);
          const uint64_t before = reader.client().counters().Total().end_to_end_trips;
          const Result<std::string> found = reader.Try(reader.Get(kind.read));
          const uint64_t trips = reader.client().counters().Total().end_to_end_trips - before;
          if (found.ok()) {
            EXPECT_TRUE(*found == old || *found == "new" || *found == kLongValue || *found == "absent")
                << *found;
          } else {
            EXPECT_EQ(found.error().code(), ErrorCode::kContended) << found.error().ToString();
            ++contended;
          }
          EXPECT_LE(trips, MostTrips(kLease, ordered)) << "step " << step;
          most_trips = std::max(most_trips, trips);
        }
        EXPECT_EQ(world.problem, "");
      }
      EXPECT_GE(contended, 4u) << "while the sequence is odd";
      RecordProperty(std::string("steps of ") + kind.name, std::to_string(step));
      RecordProperty(std::string("contended at ") + kind.name, std::to_string(contended));
      RecordProperty(std::string("most trips at ") + kind.name, std::to_string(most_trips));
    }
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
