// The freedoms of "Order" in docs/memory-model.md: the simulator must be seen to use each of them, and
// nothing beyond.
//
// Each litmus test runs a small scenario under many seeds and counts what was found.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/fabric/conformance/cite.h"
#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

using conformance::Cite;

const FarAddr kX = Line(0);
const FarAddr kY = Line(1);

// ---- two verbs of one trip: the second may be found done while the first is not

enum class Kind { kRead, kWrite, kAtomic };
std::string Name(Kind kind) {
  switch (kind) {
    case Kind::kRead: return "READ";
    case Kind::kWrite: return "WRITE";
    case Kind::kAtomic: return "atomic";
  }
  return "?";
}

constexpr uint64_t kOne = 1;

void Add(Batch& batch, Kind kind, FarAddr at, uint64_t& read, bool fenced) {
  const auto add = [&batch, fenced](auto verb) { batch.Add(fenced ? Fenced(verb) : verb); };
  switch (kind) {
    case Kind::kRead: add(Read(at, std::as_writable_bytes(std::span(&read, 1)))); break;
    case Kind::kWrite: add(WriteObject(at, kOne)); break;
    case Kind::kAtomic: add(Faa(at, 1)); break;
  }
}

struct Found {
  uint64_t first = 0;  // by the READs of the trip itself
  uint64_t second = 0;
};

// The first verb on X, the second on Y.
Task<Done> TwoVerbs(Client& client, Order order, Kind first, Kind second, bool fenced, Found& found) {
  Op op(client, OpKind::kUpdate);
  Batch batch(op, order);
  Add(batch, first, kX, found.first, false);
  Add(batch, second, kY, found.second, fenced);
  co_await batch;
  co_return Done{};
}

// A client that watches from outside: Y first, X afterwards. Where a verb is a READ, the watcher writes what
// it reads; otherwise it reads what the verb changes.
Task<Done> Watch(Client& client, Kind first, Kind second, Found& seen) {
  Op op(client, OpKind::kUpdate);
  if (first == Kind::kRead && second == Kind::kRead) {
    co_await op.InOrder(WriteObject(kY, kOne));
    co_await op.InOrder(WriteObject(kX, kOne));
  } else if (first == Kind::kRead) {
    // If Y has changed already, X is changed now: the READ of X must not find that.
    seen.second = co_await op.InOrder(Read<uint64_t>(kY));
    co_await op.InOrder(WriteObject(kX, kOne));
  } else if (second == Kind::kRead) {
    co_await op.InOrder(WriteObject(kY, kOne));
    seen.first = co_await op.InOrder(Read<uint64_t>(kX));
  } else {
    seen.second = co_await op.InOrder(Read<uint64_t>(kY));
    seen.first = co_await op.InOrder(Read<uint64_t>(kX));
  }
  co_return Done{};
}

// Whether the second verb was done before the first one.
bool Overtaken(Kind first, Kind second, const Found& own, const Found& seen) {
  if (first == Kind::kRead && second == Kind::kRead) return own.first == 1 && own.second == 0;
  if (first == Kind::kRead) return seen.second == 1 && own.first == 1;
  if (second == Kind::kRead) return own.second == 0 && seen.first == 0;
  return seen.second == 1 && seen.first == 0;
}

struct Setting {
  Order order = Order::kInOrder;
  bool fenced = false;
  bool ordered_reads = true;
};

Litmus RunPair(Kind first, Kind second, Setting setting) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(1500); ++seed) {
    SimOptions options = Free(seed);
    options.chaos.ordered_reads = setting.ordered_reads;
    SimRun run(options);
    Found own;
    Found seen;
    run.Start(TwoVerbs(run.Connect(), setting.order, first, second, setting.fenced, own));
    run.Start(Watch(run.Connect(), first, second, seen));
    run.Drain();
    litmus.Saw(Overtaken(first, second, own, seen) ? "overtaken" : "not overtaken");
  }
  return litmus;
}

constexpr std::array kKinds = {Kind::kRead, Kind::kWrite, Kind::kAtomic};

// Given trips in order of any two verbs. Expect that exactly those overtake that may.
const Cite kReadWrite("freedom/1", "A WRITE may overtake a READ before it in its trip");
const Cite kReadAtomic("freedom/2", "An atomic may overtake a READ before it in its trip");
const Cite kAtomicWrite("freedom/3", "A WRITE may overtake an atomic before it in its trip");
const Cite kAtomicAtomic("freedom/4", "An atomic may overtake an atomic before it in its trip");
TEST(FreedomOfOrder, ExactlyWhatFollowsAReadOrAnAtomicMayOvertake) {
  for (const Kind first : kKinds) {
    for (const Kind second : kKinds) {
      SCOPED_TRACE(Name(first) + ", " + Name(second));
      const Litmus litmus = RunPair(first, second, {});
      EXPECT_SEEN(litmus, "not overtaken");
      if (first != Kind::kWrite && second != Kind::kRead) {
        EXPECT_SEEN(litmus, "overtaken");
      } else {
        EXPECT_NEVER_SEEN(litmus, "overtaken");
      }
    }
  }
}

// Given the same with a fence on the second verb. Expect that none overtakes.
TEST(FreedomOfOrder, NothingFencedOvertakes) {
  for (const Kind first : kKinds) {
    for (const Kind second : kKinds) {
      SCOPED_TRACE(Name(first) + ", " + Name(second));
      EXPECT_NEVER_SEEN(RunPair(first, second, {.fenced = true, .ordered_reads = false}), "overtaken");
    }
  }
}

// Given a fabric without ordered READs. Expect that READs overtake READs, but nothing else does that did not
// before.
const Cite kUnorderedReads("freedom/5", "may also let a READ overtake a READ");
TEST(FreedomOfOrder, WithoutOrderedReadsAlsoReadsMayOvertakeReads) {
  for (const Kind first : kKinds) {
    SCOPED_TRACE(Name(first));
    const Litmus litmus = RunPair(first, Kind::kRead, {.ordered_reads = false});
    if (first == Kind::kRead) {
      EXPECT_SEEN(litmus, "overtaken");
    } else {
      EXPECT_NEVER_SEEN(litmus, "overtaken");
    }
  }
}

// Given verbs posted together. Expect that each pair is found in both orders, fenced or not.
const Cite kTogether("freedom/6", "have no order at all, fenced or not");
TEST(FreedomOfOrder, TogetherHasNoOrder) {
  for (const Kind first : kKinds) {
    for (const Kind second : kKinds) {
      for (const bool fenced : {false, true}) {
        SCOPED_TRACE(Name(first) + ", " + Name(second));
        const Litmus litmus = RunPair(first, second, {.order = Order::kTogether, .fenced = fenced});
        EXPECT_SEEN(litmus, "overtaken");
        EXPECT_SEEN(litmus, "not overtaken");
      }
    }
  }
}

// ---- trips

Task<Done> WriteOne(Client& client, FarAddr at) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(WriteObject(at, kOne));
  co_return Done{};
}
Task<Done> WatchBoth(Client& client, Found& seen) {
  Op op(client, OpKind::kSearch);
  seen.second = co_await op.InOrder(Read<uint64_t>(kY));
  seen.first = co_await op.InOrder(Read<uint64_t>(kX));
  co_return Done{};
}

// Given two trips of one client, posted one after the other without waiting. Expect both orders.
const Cite kTrips("freedom/7",
                  "Trips that are in flight at the same time have no order, even those of one client");
TEST(FreedomOfOrder, TripsInFlightHaveNoOrder) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(1000); ++seed) {
    SimRun run(Free(seed));
    SimClient& client = run.Connect();
    Found seen;
    run.Start(WriteOne(client, kX));
    run.Start(WriteOne(client, kY));
    run.Start(WatchBoth(run.Connect(), seen));
    run.Drain();
    litmus.Saw(std::to_string(seen.first) + std::to_string(seen.second));
  }
  for (const std::string both : {"00", "10", "01", "11"}) EXPECT_SEEN(litmus, both);
}

// ---- WRITEs that are lost

// The expectation decides whether the CAS succeeds.
Task<Done> CasOnce(Client& client, uint64_t expect) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Cas(kX, expect, 7));
  co_return Done{};
}
Task<Done> WriteNextTo(Client& client, uint64_t& read) {
  Op op(client, OpKind::kUpdate);
  const std::array<uint64_t, 2> words = {1, 1};
  co_await op.InOrder(WriteObject(kX, words));
  read = co_await op.InOrder(Read<uint64_t>(kX));
  co_return Done{};
}

// A WRITE of two words, on the first of which a CAS is in flight that succeeds or fails: what became of it,
// of as many seeds on which clients are told that failed CAS store back, or not.
void WriteUnderACas(bool succeeds, bool stores_back, Litmus& litmus) {
  for (uint64_t seed = 1; seed <= Seeds(3000); ++seed) {
    SimRun run(Free(seed));
    SimClient& client = run.Connect();
    if (client.stores_back_failed_cas() != stores_back) continue;
    uint64_t read = 0;
    run.Start(CasOnce(client, succeeds ? 0 : 5));
    run.Start(WriteNextTo(run.Connect(), read));
    run.Drain();
    EXPECT_EQ(run.Word(kX + 8), 1u);
    const uint64_t end = run.Word(kX);
    EXPECT_TRUE(end == 1 || end == (succeeds ? 7u : 0u));
    litmus.Saw(end == 1 ? "kept" : read == 1 ? "lost after it was read" : "lost");
  }
}

// Given a CAS that succeeds. Expect that the first word of the WRITE is lost at times, and at times is lost
// only after it was read back; but never the word beside it.
const Cite kLost("freedom/8", "A WRITE to a word on which an atomic that succeeds is in flight may be lost");
TEST(FreedomOfOrder, AWriteUnderAnAtomicMayBeLost) {
  for (const bool stores_back : {false, true}) {
    Litmus litmus;
    WriteUnderACas(/*succeeds=*/true, stores_back, litmus);
    EXPECT_SEEN(litmus, "kept");
    EXPECT_SEEN(litmus, "lost");
    EXPECT_SEEN(litmus, "lost after it was read");
  }
}

// Given a CAS that fails. Expect the same where clients are told so, and that the WRITE is kept elsewhere.
const Cite kStoredBack("freedom/23", "A CAS that fails may store back what it has read");
TEST(FreedomOfOrder, AWriteUnderAFailedCasMayBeLost_WhereTheFabricSaysSo) {
  Litmus told;
  WriteUnderACas(/*succeeds=*/false, /*stores_back=*/true, told);
  EXPECT_SEEN(told, "kept");
  EXPECT_SEEN(told, "lost");
  EXPECT_SEEN(told, "lost after it was read");
  Litmus not_told;
  WriteUnderACas(/*succeeds=*/false, /*stores_back=*/false, not_told);
  EXPECT_SEEN(not_told, "kept");
  EXPECT_NEVER_SEEN(not_told, "lost");
  EXPECT_NEVER_SEEN(not_told, "lost after it was read");
}

}  // namespace
}  // namespace farside::fabric::sim
