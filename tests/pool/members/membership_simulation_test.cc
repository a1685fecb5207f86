// Membership: registered, silent and fenced clients, and when memory may be used again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "fabric/run.h"
#include "tests/pool/client_run.h"
#include "tests/pool/members/epoch_run.h"
#include "tests/pool/pool_run.h"
#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

using fabric::ClientId;
using fabric::Op;
using fabric::OpKind;
using testing::HasSubstr;

// A client that the test drives step by step.
class ManualMember {
 public:
  explicit ManualMember(PoolRun& run)
      : run_(run),
        client_(std::move(*run.world().Connect())),
        member_(*client_, fabric::NodeId{0}, run.geometry(), LeaseOptions{.lease = kTestLease}) {}

  Membership& member() { return member_; }
  ClientId id() const { return client_->id(); }

  Result<Done> Join() {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, member_.Join(op));
  }
  Result<Done> Leave() {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, member_.Leave(op));
  }
  Result<Done> Sync() {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, member_.Sync(op, member_.known_epoch(), member_.known_epoch(), false));
  }
  Result<RegistryView> LookAround() {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, member_.LookAround(op));
  }
  Result<Standing> StandingOf(Owner owner) {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, member_.StandingOf(op, owner));
  }
  Result<Done> ReleaseSlot(Owner dead) {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, member_.ReleaseSlot(op, dead));
  }
  Result<Done> Write(uint64_t offset, uint64_t word) {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, WriteWord(op, member_, offset, word));
  }
  void Wait(Nanos duration) {
    Op op(*client_, OpKind::kMaintenance);
    ASSERT_TRUE(fabric::Run(*client_, PauseFor(op, duration)).ok());
  }

 private:
  static Task<Done> WriteWord(Op& op, Membership& member, uint64_t offset, uint64_t word) {
    co_await op.InOrder(fabric::WriteObject(member.At(offset), word));
    co_return Done{};
  }
  static Task<Done> PauseFor(Op& op, Nanos duration) {
    co_await op.Pause(duration);
    co_return Done{};
  }

  PoolRun& run_;
  std::unique_ptr<fabric::Client> client_;
  Membership member_;
};

constexpr uint64_t kSomewhere = 128 * 1024;

// ---- registration

TEST(PoolMembership, JoinLeaveJoin_NeverTheSameOwnerAgain) {
  // Given a pool with two slots.
  // When clients come and go many times.
  // Expect that no owner is ever seen twice, and that a client that left counts as gone.
  PoolRun run(PoolCalm(), SmallGeometry(2));
  ManualMember observer(run);
  ASSERT_TRUE(observer.Join().ok());
  std::set<uint32_t> owners = {observer.member().self().bits()};
  for (int i = 0; i < 20; ++i) {
    ManualMember guest(run);
    ASSERT_TRUE(guest.Join().ok());
    const Owner owner = guest.member().self();
    EXPECT_TRUE(owners.insert(owner.bits()).second);
    EXPECT_EQ(*observer.StandingOf(owner), Standing::kAlive);
    ASSERT_TRUE(guest.Leave().ok());
    EXPECT_EQ(*observer.StandingOf(owner), Standing::kGone);
    ASSERT_TRUE(guest.Join().ok()) << "the same client may join again";
    EXPECT_TRUE(owners.insert(guest.member().self().bits()).second);
    EXPECT_EQ(*observer.StandingOf(owner), Standing::kGone) << "its slot is another's now";
    ASSERT_TRUE(guest.Leave().ok());
  }
}

Task<Done> JustJoin(Membership& member, std::vector<uint32_t>& owners) {
  owners.push_back(member.self().bits());
  co_return Done{};
}

TEST(PoolMembership, ManyJoinAtOnce_EachGetsASlotOfItsOwn) {
  // Given eight clients that join eight slots at once, in any interleaving.
  // Expect that each becomes another owner.
  for (uint64_t seed = 1; seed <= 200 / kFewer; ++seed) {
    PoolRun run(PoolChaos(seed, /*faults=*/false), SmallGeometry(8));
    std::vector<uint32_t> owners;
    for (int i = 0; i < 8; ++i) {
      run.Start([&](Membership& member) { return JustJoin(member, owners); }, /*leaves=*/false);
    }
    run.Drive();
    ASSERT_EQ(run.problem(), "") << "seed " << seed;
    ASSERT_EQ(std::set<uint32_t>(owners.begin(), owners.end()).size(), 8u) << "seed " << seed;
  }
}

// ---- silence

TEST(PoolMembership, SilentClient_IsFencedAfterTheLeaseAndNotBefore) {
  PoolRun run(PoolCalm());
  ManualMember observer(run);
  ManualMember silent(run);
  ASSERT_TRUE(observer.Join().ok());
  ASSERT_TRUE(silent.Join().ok());
  const Owner owner = silent.member().self();
  const Nanos first_look = run.world().Now();
  EXPECT_TRUE(observer.LookAround()->fenced.empty());
  const Nanos seen = run.world().Now();
  // Not before the lease has passed since it was first seen so.
  while (run.world().Now() < first_look + kTestLease - Nanos(2000)) {
    EXPECT_TRUE(observer.LookAround()->fenced.empty());
    EXPECT_EQ(*observer.StandingOf(owner), Standing::kAlive);
    observer.Wait(Nanos(1000));
  }
  while (run.world().Now() < seen + kTestLease) observer.Wait(Nanos(1000));
  EXPECT_EQ(observer.LookAround()->fenced, std::vector<Owner>{owner});
  EXPECT_EQ(*observer.StandingOf(owner), Standing::kGone);
  EXPECT_EQ(run.SlotWord(owner.slot()).state(), ClientState::kFenced);
  EXPECT_EQ(run.Word(kDeathsOffset), 1u);
}

TEST(PoolMembership, ClientThatBeats_IsNeverFenced) {
  PoolRun run(PoolCalm());
  ManualMember observer(run);
  ManualMember slow(run);
  ASSERT_TRUE(observer.Join().ok());
  ASSERT_TRUE(slow.Join().ok());
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(observer.LookAround()->fenced.empty());
    observer.Wait(kTestLease * 9 / 10);
    ASSERT_TRUE(slow.Sync().ok());
  }
}

TEST(PoolMembership, SleeperWakes_LearnsThatItWasFenced_AndItsLateVerbsDoNothing) {
  // Given a client that falls asleep with a WRITE on its way, for longer than its lease.
  // When it was fenced, and wakes.
  // Expect that its WRITE never lands, that it is told so clearly, and that it can come back as a new client.
  for (uint64_t seed = 1; seed <= 100 / kFewer; ++seed) {
    PoolRun run(PoolChaos(seed, /*faults=*/false));
    ManualMember observer(run);
    ManualMember sleeper(run);
    ASSERT_TRUE(observer.Join().ok());
    ASSERT_TRUE(sleeper.Join().ok());
    const Owner owner = sleeper.member().self();
    run.world().Sleep(sleeper.id(), 5 * kTestLease);
    while (*observer.StandingOf(owner) == Standing::kAlive) observer.Wait(kTestLease / 8);

    const Result<Done> late = sleeper.Write(kSomewhere, 7);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code(), ErrorCode::kFenced);
    EXPECT_THAT(late.error().message(), HasSubstr("taken for dead"));
    EXPECT_THAT(late.error().message(), HasSubstr("reconnect as a new client"));
    for (const Result<Done>& attempt : {sleeper.Sync(), sleeper.Leave(), sleeper.Join()}) {
      ASSERT_FALSE(attempt.ok());
      EXPECT_EQ(attempt.error().code(), ErrorCode::kFenced);
    }
    EXPECT_EQ(run.Word(kSomewhere), 0u);

    ASSERT_TRUE(observer.ReleaseSlot(owner).ok());
    ManualMember again(run);
    ASSERT_TRUE(again.Join().ok());
    EXPECT_NE(again.member().self(), owner);
    EXPECT_EQ(again.member().self().slot(), owner.slot()) << "the slot of the dead client is used again";
  }
}

Task<Done> WriteAfterAnother(Membership& member, uint64_t& about_to_write) {
  Op op(member.client(), OpKind::kMaintenance);
  const uint64_t word = 1;
  about_to_write = Number(member.client().id());
  co_await op.InOrder(fabric::WriteObject(member.At(kSomewhere), word));
  co_return Done{};
}

TEST(PoolMembership, VerbsPostedBeforeTheFence_LandBeforeItOrNever) {
  // Given a client that dies or sleeps with a WRITE in flight.
  // When a client has found it to be gone.
  // Expect that the word does not change any more.
  for (uint64_t seed = 1; seed <= 300 / kFewer; ++seed) {
    fabric::sim::SimOptions options = PoolChaos(seed, /*faults=*/false);
    options.chaos.delay_verb = 512;
    options.chaos.longest_delay = 4 * kTestLease;
    PoolRun run(options);
    ManualMember observer(run);
    ASSERT_TRUE(observer.Join().ok());
    ManualMember victim(run);
    ASSERT_TRUE(victim.Join().ok());
    const Owner owner = victim.member().self();
    uint64_t writing = 0;
    Task<Done> task = WriteAfterAnother(victim.member(), writing);
    task.Start();
    if (seed % 2 == 0) {
      run.world().Crash(victim.id());
    } else {
      run.world().Sleep(victim.id(), 20 * kTestLease);
    }
    Result<Standing> standing = observer.StandingOf(owner);
    while (standing.ok() && *standing == Standing::kAlive) {
      observer.Wait(kTestLease / 8);
      standing = observer.StandingOf(owner);
    }
    ASSERT_TRUE(standing.ok());
    const uint64_t word = run.Word(kSomewhere);
    while (run.world().Step()) continue;
    ASSERT_EQ(run.Word(kSomewhere), word) << "seed " << seed;
  }
}

Task<Done> BeatFor(Membership& member, Nanos duration) {
  Op op(member.client(), OpKind::kMaintenance);
  const Nanos end = member.client().Now() + duration;
  while (member.client().Now() < end) {
    const uint64_t known = member.known_epoch();
    co_await member.Sync(op, known, known, false);
    co_await op.Pause(kTestLease / 8);
  }
  co_return Done{};
}

Task<Done> LookAgain(Membership& member, PoolRun& run, uint64_t& looking) {
  Op op(member.client(), OpKind::kMaintenance);
  for (int i = 0; i < 10; ++i) co_await member.LookAround(op);
  looking = Number(member.client().id());
  const RegistryView view = co_await member.LookAround(op);
  if (!view.fenced.empty()) run.Problem("fenced a client that has beaten all the time");
  co_return Done{};
}

TEST(PoolMembership, ObserverThatSleepsInTheMiddleOfALook_FencesNoClientForIt) {
  // Given a client that beats, and another that looks at it in quick succession, and sleeps for several
  // leases between the READ of the last look and its answer.
  // Expect that it does not take its own sleep for the other's silence.
  PoolRun run(PoolCalm());
  run.Start([&](Membership& member) { return BeatFor(member, 10 * kTestLease); });
  uint64_t looking = 0;
  run.Start([&](Membership& member) { return LookAgain(member, run, looking); });
  while (looking == 0) ASSERT_TRUE(run.world().Step());
  run.world().Sleep(static_cast<ClientId>(looking), 3 * kTestLease);
  run.Drive();
  EXPECT_EQ(run.problem(), "");
}

TEST(PoolMembership, SlotOfAShortVisitor_ItsNextClientHasItsOwnLease) {
  // Given a slot whose last client beat once, and a client that spends most of a lease on joining there.
  // When it has become live, with a first beat that looks like the last one of the other.
  // Expect that it is given a whole lease from then on.
  PoolRun run(PoolCalm());
  ManualMember observer(run);
  ASSERT_TRUE(observer.Join().ok());
  {
    ManualMember visitor(run);
    ASSERT_TRUE(visitor.Join().ok());
    ASSERT_TRUE(visitor.Leave().ok());
  }
  ManualMember joiner(run);
  Op op(joiner.member().client(), OpKind::kMaintenance);
  Task<Done> join = joiner.member().Join(op);
  join.Start();
  while (run.SlotWord(1).state() != ClientState::kJoining) ASSERT_TRUE(run.world().Step());
  run.world().Sleep(joiner.id(), kTestLease * 9 / 10);
  EXPECT_TRUE(observer.LookAround()->fenced.empty());
  while (!join.done()) ASSERT_TRUE(run.world().Step());
  ASSERT_TRUE(join.TakeResult().ok());
  EXPECT_TRUE(observer.LookAround()->fenced.empty());
  observer.Wait(kTestLease * 9 / 10);
  EXPECT_TRUE(observer.LookAround()->fenced.empty()) << "nine tenths of a lease after it joined";
  EXPECT_TRUE(joiner.Sync().ok());
}

// ---- joining, and dying meanwhile

TEST(PoolMembership, JoiningClientDiesAtEveryVerb_ItsSlotIsUsedAgain) {
  // Given one client that joins and leaves a pool of two slots, with every fault at each of its verbs.
  // When another one looks around for a while, and releases the slots of clients that it has fenced.
  // Expect both slots to be usable.
  const auto run_once = [](const fabric::sim::SimOptions& options) {
    PoolRun run(options, SmallGeometry(3));
    std::vector<uint32_t> owners;
    run.Start([&](Membership& member) { return JustJoin(member, owners); });
    run.Drive();
    RunOutcome outcome = run.EndOfScripts();
    run.Start([](Membership& member) { return ReleaseDeadSlots(member); });
    run.Drive();
    for (uint32_t slot = 0; slot < 3; ++slot) {
      if (run.SlotWord(slot).state() != ClientState::kFree) run.Problem("a slot is lost");
    }
    outcome.problem = run.problem();
    return outcome;
  };
  uint64_t faults = 0;
  for (uint64_t seed = 1; seed <= 16 / kFewer; ++seed) {
    EXPECT_EQ(ForEveryFault(PoolChaos(seed, /*faults=*/false), run_once, faults), "");
  }
  EXPECT_GT(faults, 16u * 20 / kFewer);
}

TEST(PoolMembership, ComingAndGoingWithFaults_LosesNoSlot) {
  // Given six clients that join, beat and leave, and die, sleep and lose completions at any moment.
  // When an auditor has released the slots of dead clients.
  // Expect every slot to be free.
  for (uint64_t seed = 1; seed <= 200 / kFewer; ++seed) {
    PoolRun run(PoolChaos(seed, /*faults=*/true), SmallGeometry(40));
    for (int i = 0; i < 6; ++i) run.Start([](Membership& member) { return BeatFor(member, kTestLease); });
    run.Drive();
    run.EndOfScripts();
    run.Start([](Membership& member) { return ReleaseDeadSlots(member); });
    run.Drive();
    ASSERT_EQ(run.problem(), "") << "seed " << seed;
    for (uint32_t slot = 0; slot < 40; ++slot) {
      ASSERT_EQ(run.SlotWord(slot).state(), ClientState::kFree) << "seed " << seed << ", slot " << slot;
    }
  }
}

// ---- fencing each other

Task<Done> WaitUntilGone(Membership& member, Owner other, std::string& log) {
  Op op(member.client(), OpKind::kMaintenance);
  co_await op.Pause(kTestLease * 2);
  for (int i = 0; i < 200; ++i) {
    const Result<Standing> standing = co_await member.StandingOf(op, other).Outcome();
    if (!standing.ok()) {
      log += "fenced ";
      co_return Done{};
    }
    if (*standing == Standing::kGone) {
      // A client that is told that the other is gone is alive itself, and stays so.
      const Result<Done> alive = co_await member.Sync(op, 0, 0, false).Outcome();
      log += alive.ok() ? "survives " : "both-dead ";
      co_return Done{};
    }
    co_await op.Pause(kTestLease / 16);
  }
  log += "both-alive ";
  co_return Done{};
}

TEST(PoolMembership, TwoThatFallSilentAndSuspectEachOther_NeverBothActOnIt) {
  // Given two clients that have seen each other, fall silent for two leases, and then ask whether the other
  // is gone. Asking is a sign of life, so that usually both live; where they suspect each other, expect at
  // most one to act on it.
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 400 / kFewer; ++seed) {
    PoolRun run(PoolChaos(seed, /*faults=*/false));
    ManualMember first(run);
    ManualMember second(run);
    ASSERT_TRUE(first.Join().ok());
    ASSERT_TRUE(second.Join().ok());
    ASSERT_TRUE(first.LookAround().ok());
    ASSERT_TRUE(second.LookAround().ok());
    std::string log;
    Task<Done> one = WaitUntilGone(first.member(), second.member().self(), log);
    Task<Done> two = WaitUntilGone(second.member(), first.member().self(), log);
    one.Start();
    two.Start();
    while (!one.done() || !two.done()) ASSERT_TRUE(run.world().Step());
    seen.insert(log);
    ASSERT_NE(log, "survives survives ") << "seed " << seed;
    ASSERT_EQ(log.find("both-dead"), std::string::npos) << "seed " << seed;
  }
  EXPECT_GT(seen.size(), 1u) << "a client is fenced in some of the runs";
}

// ---- epochs

TEST(PoolEpochs, ReaderInsideAnOperation_NeverSeesAReusedCell) {
  // Given writers that replace a cell and use the old one again when its epoch is safe, and readers that sync
  // in the middle of an operation.
  // Expect that what a reader was pointed to stays what it was until its operation ends.
  uint64_t reuses = 0;
  for (uint64_t seed = 1; seed <= 150 / kFewer; ++seed) {
    const EpochOutcome outcome = RunEpochs(PoolChaos(seed, /*faults=*/false), Publish::kOldestInFlight);
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
    reuses += outcome.reuses;
  }
  EXPECT_GT(reuses, 1000u / kFewer);
}

TEST(PoolEpochs, WithFaults_NeverEither) {
  uint64_t reuses = 0;
  for (uint64_t seed = 1; seed <= 150 / kFewer; ++seed) {
    const EpochOutcome outcome = RunEpochs(PoolChaos(seed, /*faults=*/true), Publish::kOldestInFlight);
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
    reuses += outcome.reuses;
  }
  EXPECT_GT(reuses, 200u / kFewer);
}

TEST(PoolEpochs, ReaderThatPublishesWhatItKnowsNow_IsCaught) {
  // Given the same, but readers that publish the newest epoch although an operation is in flight.
  // Expect that one of them meets a cell that was used again: the test above can fail.
  uint64_t caught = 0;
  for (uint64_t seed = 1; seed <= 150 / kFewer; ++seed) {
    if (!RunEpochs(PoolChaos(seed, /*faults=*/false), Publish::kNewest).problem.empty()) ++caught;
  }
  EXPECT_GT(caught, 0u);
}

TEST(PoolEpochs, PinnedReader_NeverSeesAReusedBlock) {
  // Given the same structure through PoolClient: pins, syncs, and blocks of its allocator.
  // Expect the same.
  uint64_t follows = 0;
  for (uint64_t seed = 1; seed <= 150 / kFewer; ++seed) {
    const EpochOutcome outcome = RunPinned(PoolChaos(seed, /*faults=*/false));
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
    follows += outcome.reuses;
  }
  EXPECT_GT(follows, 1000u / kFewer);
}

}  // namespace
}  // namespace farside::pool
