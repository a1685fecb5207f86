// What the contract says about the order of verbs and of the lines of one verb: protocols that rely on more
// than it gives are caught, their repaired versions are clean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "check/exhaustive/actor.h"
#include "check/exhaustive/explorer.h"
#include "fabric/op.h"

namespace farside::check {
namespace {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Fenced;
using fabric::kLineBytes;
using fabric::kPageBytes;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::Order;
using fabric::Read;
using fabric::WriteObject;
using testing::HasSubstr;

constexpr FarAddr At(uint64_t offset) { return {NodeId{0}, offset}; }

// ---- a record of two lines, which should always be equal ----------------------------------------------

struct Record {
  uint64_t left;
  std::array<uint64_t, 7> unused;
  uint64_t right;
};

constexpr FarAddr kVersion = At(0);
constexpr uint64_t kRecordOffset = kLineBytes;

// "11" is a value that a client stored, "12" is torn.
std::string TextOf(const Record& record) {
  return std::to_string(record.left) + std::to_string(record.right);
}

Task<Outcome> PutPlain(Actor& self, uint64_t offset, uint64_t n) {
  Op op(self.client(), OpKind::kUpdate);
  const Record record{.left = n, .unused = {}, .right = n};
  co_await op.InOrder(WriteObject(At(offset), record));
  co_return Outcome(Stored{});
}

Task<Outcome> GetPlain(Actor& self, uint64_t offset) {
  Op op(self.client(), OpKind::kSearch);
  const Record record = co_await op.InOrder(Read<Record>(At(offset)));
  if (record.left == 0 && record.right == 0) co_return Outcome(Found{});
  co_return Outcome(Found{TextOf(record)});
}

// The version is odd while the record changes. There is one writer.
Task<Outcome> PutVersioned(Actor& self, uint64_t offset, uint64_t n) {
  Op op(self.client(), OpKind::kUpdate);
  const uint64_t odd = 2 * n - 1;
  const uint64_t even = 2 * n;
  const Record record{.left = n, .unused = {}, .right = n};
  co_await op.InOrder(WriteObject(kVersion, odd), WriteObject(At(offset), record),
                      WriteObject(kVersion, even));
  co_return Outcome(Stored{});
}

Task<Outcome> GetVersioned(Actor& self, uint64_t offset) {
  Op op(self.client(), OpKind::kSearch);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto [before, record, after] =
        co_await op.InOrder(Read<uint64_t>(kVersion), Read<Record>(At(offset)), Read<uint64_t>(kVersion));
    if (before != after || before % 2 != 0) continue;
    if (before == 0) co_return Outcome(Found{});
    co_return Outcome(Found{TextOf(record)});
  }
  co_return Error(ErrorCode::kContended, "the record changed all the time");
}

using Put = Task<Outcome> (*)(Actor& self, uint64_t offset, uint64_t n);
using Get = Task<Outcome> (*)(Actor& self, uint64_t offset);

Task<Done> PutTwice(Actor& self, Put put, uint64_t offset) {
  co_await Recorded(self, Call::Put("r", "11"), put(self, offset, 1));
  co_await Recorded(self, Call::Put("r", "22"), put(self, offset, 2));
  co_return Done{};
}

Task<Done> GetTwice(Actor& self, Get get, uint64_t offset) {
  for (int i = 0; i < 2; ++i) {
    Result<Done> done = co_await Recorded(self, Call::Get("r"), get(self, offset)).Outcome();
    if (!done.ok() && done.error().code() != ErrorCode::kContended) co_return done;
  }
  co_return Done{};
}

Scenario OneWriterOneReader(Put put, Get get, uint64_t offset = kRecordOffset) {
  Scenario scenario;
  scenario.region_bytes = offset + 2 * kLineBytes;
  scenario.participants = {{.program = [=](Actor& self) { return PutTwice(self, put, offset); }},
                           {.program = [=](Actor& self) { return GetTwice(self, get, offset); }}};
  scenario.freedoms.tear_reads = true;
  scenario.freedoms.tear_writes = true;
  return scenario;
}

TEST(ExhaustiveOrder, RecordOfTwoLinesWithoutVersion_TornReadIsFound) {
  // Given a record of two lines without any guard
  const Scenario scenario = OneWriterOneReader(PutPlain, GetPlain);
  // When its lines are read and written in any order
  const Exploration found = Explore(scenario);
  // Expect a value that no client stored
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
  EXPECT_THAT(found.ToString(), HasSubstr("of 0x40+72"));
}

TEST(ExhaustiveOrder, RecordOfTwoLinesThatAreWhole_IsLinearizable) {
  // Given the same record on a fabric that does not tear
  Scenario scenario = OneWriterOneReader(PutPlain, GetPlain);
  scenario.freedoms.tear_reads = false;
  scenario.freedoms.tear_writes = false;
  // Expect that nothing is wrong
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveOrder, RecordOfTwoLinesWithVersion_IsLinearizable) {
  // Given a record whose version is read before and after it
  const Scenario scenario = OneWriterOneReader(PutVersioned, GetVersioned);
  // When its lines are read and written in any order
  const Exploration found = Explore(scenario);
  // Expect that nothing is wrong
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveOrder, RecordWithVersionAndUnorderedReads_TornReadIsFound) {
  // Given the same on a fabric that may sample READs of a trip in any order
  Scenario scenario = OneWriterOneReader(PutVersioned, GetVersioned);
  scenario.freedoms.ordered_reads = false;
  // Expect a value that no client stored
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
}

// ---- the window in which the lines of one READ are sampled ----------------------------------------------

// Left first; right one round trip later.
Task<Outcome> PutInTwoTrips(Actor& self, uint64_t offset, uint64_t n) {
  Op op(self.client(), OpKind::kUpdate);
  co_await op.InOrder(WriteObject(At(offset), n));
  co_await op.InOrder(WriteObject(At(offset + kLineBytes), n));
  co_return Outcome(Stored{});
}

// Right without left is impossible if not both updates fall between the samples of the two lines.
Task<Done> ExpectNotRightWithoutLeft(Actor& self, uint64_t offset) {
  Op op(self.client(), OpKind::kSearch);
  const Record record = co_await op.InOrder(Read<Record>(At(offset)));
  if (record.right > record.left) co_return Error(ErrorCode::kCorrupt, "right without left");
  co_return Done{};
}

Scenario TwoTripsAndARead(uint64_t offset) {
  Scenario scenario = OneWriterOneReader(PutInTwoTrips, GetPlain, offset);
  scenario.participants[1].program = [=](Actor& self) { return ExpectNotRightWithoutLeft(self, offset); };
  return scenario;
}

TEST(ExhaustiveOrder, ReadInsideOnePage_SeesStepsOfOnlyOneTrip) {
  // Given a writer that updates two lines in two trips, and a READ of both lines inside one page
  // Expect that the two trips do not both fall into the window of the READ
  const Exploration found = Explore(TwoTripsAndARead(kRecordOffset));
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveOrder, ReadAcrossPages_SeesStepsOfSeveralTrips) {
  // Given the same across two pages, where nothing is promised
  // Expect that the second update is seen without the first
  const Exploration found = Explore(TwoTripsAndARead(kPageBytes - kLineBytes));
  EXPECT_EQ(found.conclusion, Conclusion::kStuck) << found.ToString();
  EXPECT_THAT(found.what, HasSubstr("right without left"));
}

// ---- a counter under a lock ----------------------------------------------------------------------------

constexpr FarAddr kLock = At(0);
constexpr FarAddr kCounter = At(8);

enum class Commit {
  kCasThenCas,        // nothing keeps the unlock behind the commit
  kCasThenFencedCas,  // the fence does
  kWriteThenCas,      // a WRITE is not overtaken
  kWriteWithCas,      // but without order, it is
  kDetachedUnlock,    // the unlock is posted after the commit has completed, and not waited for
};

Task<Done> CommitAndUnlock(Op& op, Commit commit, uint64_t me, uint64_t old, uint64_t sum) {
  switch (commit) {
    case Commit::kCasThenCas: co_await op.InOrder(Cas(kCounter, old, sum), Cas(kLock, me, 0)); break;
    case Commit::kCasThenFencedCas:
      co_await op.InOrder(Cas(kCounter, old, sum), Fenced(Cas(kLock, me, 0)));
      break;
    case Commit::kWriteThenCas: co_await op.InOrder(WriteObject(kCounter, sum), Cas(kLock, me, 0)); break;
    case Commit::kWriteWithCas: co_await op.Together(WriteObject(kCounter, sum), Cas(kLock, me, 0)); break;
    case Commit::kDetachedUnlock:
      co_await op.InOrder(WriteObject(kCounter, sum));
      op.Detach(Order::kInOrder, Cas(kLock, me, 0));
      break;
  }
  co_return Done{};
}

Task<Outcome> IncrementLocked(Actor& self, Commit commit) {
  Op op(self.client(), OpKind::kUpdate);
  const uint64_t me = Number(self.client().id());
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto [owner, seen] = co_await op.InOrder(Cas(kLock, 0, me), Read<uint64_t>(kCounter));
    if (owner != 0) {
      self.Forget(static_cast<uint64_t>(attempt));
      continue;
    }
    co_await CommitAndUnlock(op, commit, me, seen, seen + 1);
    co_return Outcome(Counted{seen + 1});
  }
  co_return Error(ErrorCode::kContended, "the lock is held by others");
}

Task<Done> IncrementLockedTwice(Actor& self, Commit commit) {
  for (int i = 0; i < 2; ++i) {
    Result<Done> done =
        co_await Recorded(self, Call::Increment("n"), IncrementLocked(self, commit)).Outcome();
    if (!done.ok() && done.error().code() != ErrorCode::kContended) co_return done;
  }
  co_return Done{};
}

Scenario CounterUnderLock(Commit commit) {
  Scenario scenario;
  const Program program = [=](Actor& self) { return IncrementLockedTwice(self, commit); };
  scenario.participants = {{.program = program}, {.program = program}, {.program = program}};
  return scenario;
}

TEST(ExhaustiveOrder, UnlockByCasBehindCommitByCas_OvertakesIt) {
  // Given a protocol that commits by CAS and unlocks by CAS in one trip in order
  const Exploration found = Explore(CounterUnderLock(Commit::kCasThenCas));
  // Expect that the unlock overtakes the commit, and an update is lost
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
}

TEST(ExhaustiveOrder, FencedUnlockBehindCommitByCas_IsLinearizable) {
  const Exploration found = Explore(CounterUnderLock(Commit::kCasThenFencedCas));
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveOrder, UnlockByCasBehindCommitByWrite_IsLinearizable) {
  const Exploration found = Explore(CounterUnderLock(Commit::kWriteThenCas));
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveOrder, UnlockTogetherWithCommitByWrite_OvertakesIt) {
  const Exploration found = Explore(CounterUnderLock(Commit::kWriteWithCas));
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
}

TEST(ExhaustiveOrder, UnlockThatNoClientWaitsFor_IsLinearizable) {
  const Exploration found = Explore(CounterUnderLock(Commit::kDetachedUnlock));
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveOrder, CommitThatNoClientWaitsFor_IsFound) {
  // Given a client that returns before its WRITE has arrived
  struct Programs {
    static Task<Outcome> PutDetached(Actor& self, uint64_t offset, uint64_t n) {
      Op op(self.client(), OpKind::kUpdate);
      const Record record{.left = n, .unused = {}, .right = n};
      op.Detach(Order::kInOrder, WriteObject(At(offset), record));
      co_return Outcome(Stored{});
    }
  };
  // When another one reads, without tearing
  Scenario scenario = OneWriterOneReader(Programs::PutDetached, GetPlain);
  scenario.freedoms = {};
  // Expect that it misses what was acknowledged
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
}

TEST(ExhaustiveOrder, AnswerFromACacheWithoutATrip_MayBeStale) {
  // Given a reader that answers its second Get from memory
  struct Programs {
    static Task<Outcome> Remembered(Outcome outcome) { co_return outcome; }
    static Task<Done> GetCached(Actor& self) {
      const Outcome first = co_await GetPlain(self, kRecordOffset);
      co_await Recorded(self, Call::Get("r"), Remembered(first));
      co_return Done{};
    }
  };
  Scenario scenario = OneWriterOneReader(PutPlain, GetPlain);
  scenario.freedoms = {};
  scenario.participants[1].program = Programs::GetCached;
  // Expect that a Put may end before that Get begins
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
}

}  // namespace
}  // namespace farside::check
