#include "tests/engines/nessie/explored.h"

#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "check/perform.h"
#include "pool/region/superblock.h"
#include "store/registration.h"
#include "tests/engines/nessie/world.h"

namespace farside::index::nessie {

using check::Actor;
using check::Call;
using check::Participant;
using check::Program;
using check::Scenario;

namespace {

// A client is taken for dead if another one looks at it twice; and after a few trips an operation gives up.
const pool::ClientOptions kImpatient{.lease = {.lease = std::chrono::microseconds(1)}};
// There is no time for a second attempt.
const pool::ClientOptions kOneAttempt{.lease = {.lease = Nanos(0)}};

Task<check::Outcome> PerformOne(fabric::Client& client, Index& index, Call call) {
  fabric::Op op(client, fabric::OpKind::kSearch);
  co_return co_await check::Perform(index, op, call);
}

FindEngine Only(std::shared_ptr<Engine> engine) {
  return [engine](std::string_view, const OptionMap&) -> Result<std::shared_ptr<Engine>> { return engine; };
}

}  // namespace

Explored::Explored(const OptionMap& own, Retries retries) : retries_(retries) {
  OptionMap options = {{"slots", "4"}, {"max_load", "1"}, {"burst", "0"},
                       {"sweep", "0"}, {"grow", "no"},    {"backoff_us", "1"}};
  for (const auto& [key, value] : own) options[key] = value;
  engine_ = *MakeNessieEngine(options);
  options["max_load"] = "0.000001";
  options["grow"] = "yes";
  grower_ = *MakeNessieEngine(options);
  scenario.set_up = check::Format(*engine_, kImpatient);
  scenario.region_bytes = 2 * check::kExploredRegionBytes;
  scenario.prepare_in_turn = true;
  scenario.max_trips = 60;
}

Participant Explored::Begin(std::vector<Call> calls, bool announces) {
  return {.program = [this, calls = std::move(calls), announces](Actor& self) {
    return BeginWith(self, calls, announces);
  }};
}

Program Explored::Do(Prelude prelude, std::vector<Call> calls) {
  return [this, prelude, calls = std::move(calls)](Actor& self) { return Perform(self, prelude, calls); };
}

Program Explored::DoAlone(std::vector<Call> calls) {
  return check::Calls(*engine_, kImpatient, std::move(calls), {.must_succeed = true});
}

Program Explored::Verify() { return check::Verify(*engine_, kImpatient); }

Task<Done> Explored::BeginWith(Actor& self, std::vector<Call> calls, bool announces) {
  fabric::Op op(self.client(), fabric::OpKind::kMaintenance);
  const std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, self.client(), Only(announces ? grower_ : engine_), kImpatient);
  {
    const OpenTable table = co_await session->tables().Open(op, "t");
    for (const Call& call : calls)
      co_await check::Recorded(self, call, PerformOne(self.client(), *table.index, call));
    for (int i = 0; i < 2 && announces; ++i) {
      co_await session->pool().Sync(op, false);
      co_await PerformOne(self.client(), *table.index, Call::Get("looks"));
    }
  }
  co_await session->Leave(op);
  co_return Done{};
}

Task<Done> Explored::Perform(Actor& self, Prelude prelude, std::vector<Call> calls) {
  fabric::Op op(self.client(), fabric::OpKind::kMaintenance);
  const std::unique_ptr<store::Registration> session = co_await store::Registration::Join(
      op, self.client(), Only(engine_), retries_ == Retries::kNever ? kOneAttempt : kImpatient);
  const OpenTable table = co_await session->tables().Open(op, "t");
  const fabric::FarAddr root = table.info.roots[0];
  if (prelude.activates) {
    const RootLine line = co_await op.InOrder(fabric::Read<RootLine>(root));
    const StateWord steady = StateWord::Steady(line.state.version() + line.state.steps());
    if (line.state.phase() != Phase::kAnnounced)
      co_return Error(ErrorCode::kInvalidArgument, "there is no growth that could be made to count");
    co_await op.InOrder(fabric::Cas(root, line.state.word(), steady.word()));
  }
  if (prelude.learns) {
    co_await PerformOne(self.client(), *table.index, Call::Get("looks"));
    pool::Allocator& allocator = session->pool().allocator(root.node);
    allocator.FreeUnpublished(co_await allocator.Allocate(op, fabric::kLineBytes), fabric::kLineBytes);
  }
  for (const Call& call : calls)
    co_await check::Recorded(self, call, PerformOne(self.client(), *table.index, call)).Outcome();
  co_return Done{};
}

// ---- scenarios -------------------------------------------------------------------------------------------

namespace {

// The calls point to them, and programs run long after a scenario was made.
const std::string& Kept(const Places& places) {
  static std::map<std::tuple<uint64_t, uint64_t, uint32_t>, std::string> keys;
  std::string& key = keys[{places.primary, places.secondary, places.version}];
  if (key.empty()) key = KeyAt(places);
  return key;
}

// The key that all is about; one that has its primary slot there too; one that takes its secondary slot, and
// two that fill the rest.
const std::string& K() { return Kept({0, 1}); }
const std::string& AtPrimary() { return Kept({0, 2}); }
const std::string& AtSecondary() { return Kept({1, 3}); }
const std::string& At2() { return Kept({2, 3}); }
const std::string& At3() { return Kept({3, 2}); }

constexpr Prelude kLearns{.learns = true};

// K stands in slot 1, slot 0 is empty, and the others are taken.
std::vector<Call> StandsInSecondary() {
  return {Call::Put(AtPrimary(), "0"), Call::Put(K(), "0"), Call::Delete(AtPrimary()), Call::Put(At2(), "0"),
          Call::Put(At3(), "0")};
}
std::vector<Call> StandsInPrimary() {
  return {Call::Put(K(), "0"), Call::Put(At2(), "0"), Call::Put(At3(), "0")};
}

// A successor, and a look at the whole table.
void ThenGoOn(Explored& explored, int phase, std::vector<Call> calls) {
  explored.scenario.participants.push_back({.program = explored.DoAlone(std::move(calls)), .phase = phase});
  explored.scenario.participants.push_back({.program = explored.Verify(), .phase = phase + 1});
}

}  // namespace

void TwoPutAKey(Explored& explored) {
  explored.scenario.participants = {{.program = explored.Do(kLearns, {Call::Insert(K(), "1")}),
                                     .may_die = true,
                                     .may_lose_completion = true},
                                    {.program = explored.Do(kLearns, {Call::Insert(K(), "2")})},
                                    {.program = explored.Do(kLearns, {Call::Get(K())})}};
  ThenGoOn(explored, 1, {Call::Get(K()), Call::Put(K(), "3"), Call::Get(K())});
}

void TwoPutAKeyWhereASlotComesFree(Explored& explored) {
  explored.scenario.participants = {
      explored.Begin({Call::Put(AtPrimary(), "0")}),
      {.program = explored.Do(kLearns, {Call::Delete(AtPrimary())}), .phase = 1},
      {.program = explored.Do(kLearns, {Call::Put(K(), "1")}), .phase = 1},
      {.program = explored.Do(kLearns, {Call::Insert(K(), "2")}), .phase = 1}};
  ThenGoOn(explored, 2, {Call::Get(K()), Call::Put(K(), "3"), Call::Get(K())});
}

void InsertMeetsAChange(Explored& explored) {
  explored.scenario.participants = {
      explored.Begin(StandsInSecondary()),
      {.program = explored.Do(kLearns, {Call::Insert(K(), "1")}), .may_die = true, .phase = 1},
      {.program = explored.Do(kLearns, {Call::Delete(K()), Call::Insert(K(), "2")}), .phase = 1}};
  ThenGoOn(explored, 2, {Call::Get(K()), Call::Put(K(), "3"), Call::Get(K())});
}

void MigrationMeets(Explored& explored, Direction direction, Beside beside, bool is_read) {
  const bool to_primary = direction == Direction::kToPrimary;
  const std::string& displaces = to_primary ? AtSecondary() : AtPrimary();
  explored.scenario.participants = {explored.Begin(to_primary ? StandsInSecondary() : StandsInPrimary()),
                                    {.program = explored.Do(kLearns, {Call::Put(displaces, "1")}),
                                     .may_die = true,
                                     .may_lose_completion = beside != Beside::kPutAndDelete,
                                     .phase = 1}};
  auto& all = explored.scenario.participants;
  if (beside == Beside::kPut || beside == Beside::kPutAndDelete)
    all.push_back({.program = explored.Do(kLearns, {Call::Put(K(), "2")}), .phase = 1});
  if (beside == Beside::kDelete || beside == Beside::kPutAndDelete)
    all.push_back({.program = explored.Do(kLearns, {Call::Delete(K())}), .phase = 1});
  if (is_read) all.push_back({.program = explored.Do(kLearns, {Call::Get(K())}), .phase = 1});
  // A reader leaves nothing behind: what others find afterwards is seen without it.
  if (is_read && beside == Beside::kPutAndDelete) return;
  ThenGoOn(explored, 2, {Call::Get(K()), Call::Put(K(), "3"), Call::Get(K()), Call::Get(displaces)});
}

void KeyGoesAndComesBack(Explored& explored) {
  explored.scenario.participants = {
      explored.Begin(StandsInSecondary()),
      {.program = explored.Do(kLearns, {Call::Put(AtSecondary(), "1"), Call::Delete(AtSecondary()),
                                        Call::Put(AtPrimary(), "2"), Call::Delete(AtPrimary())}),
       .phase = 1},
      {.program = explored.Do(kLearns, {Call::Get(K())}), .phase = 1}};
  ThenGoOn(explored, 2, {Call::Get(K())});
}

void KeyIsMadeAnewInItsOtherSlot(Explored& explored) {
  std::vector<Call> before = StandsInSecondary();
  before.push_back(Call::Put(AtSecondary(), "0"));
  before.push_back(Call::Delete(AtSecondary()));
  explored.scenario.participants = {
      explored.Begin(before),
      {.program = explored.Do(kLearns, {Call::Update(K(), "1")}), .phase = 1},
      {.program =
           explored.Do(kLearns, {Call::Delete(K()), Call::Put(AtPrimary(), "2"), Call::Insert(K(), "3")}),
       .phase = 1}};
  ThenGoOn(explored, 2, {Call::Get(K()), Call::Put(K(), "4"), Call::Get(K())});
}

void TwoMeetWhatAMigratorLeft(Explored& explored) {
  explored.scenario.participants = {
      explored.Begin(StandsInSecondary()),
      {.program = explored.Do(kLearns, {Call::Put(AtSecondary(), "1")}), .may_die = true, .phase = 1},
      {.program = explored.Do(kLearns, {Call::Update(K(), "2")}), .phase = 2},
      {.program = explored.Do(kLearns, {Call::Delete(K())}), .phase = 2}};
  ThenGoOn(explored, 3, {Call::Get(K()), Call::Put(K(), "3"), Call::Get(AtSecondary())});
}

void SuccessorMeetsAPendingEntry(Explored& explored, bool fresh) {
  explored.scenario.participants = {
      fresh ? explored.Begin({}) : explored.Begin({Call::Put(K(), "0")}),
      {.program = explored.Do(kLearns, {Call::Put(K(), "1")}), .may_die = true, .phase = 1},
      {.program = explored.Do(kLearns, {Call::Put(K(), "2")}), .phase = 2},
      {.program = explored.Do(kLearns, {Call::Get(K()), Call::Get(K())}), .phase = 2}};
  ThenGoOn(explored, 3, {Call::Get(K()), Call::Delete(K()), Call::Get(K())});
}

void SuccessorMeetsAFreshEntryBesideTheKey(Explored& explored) {
  explored.scenario.participants = {
      explored.Begin(StandsInSecondary()),
      {.program = explored.Do(kLearns, {Call::Insert(K(), "1")}), .may_die = true, .phase = 1},
      {.program = explored.Do(kLearns, {Call::Update(K(), "2")}), .phase = 2},
      {.program = explored.Do(kLearns, {Call::Get(K())}), .phase = 2}};
  ThenGoOn(explored, 3, {Call::Get(K()), Call::Delete(K()), Call::Get(K())});
}

// The table has just grown, and slots 0 and 2 are taken: a put of a key that has no other slots splits
// slot 4. With that, `moves` goes there; or slot 4 becomes free for the put, and `moves` is inserted
// meanwhile.
void SplitMeets(Explored& explored, Moving moving, bool is_read) {
  const std::string& moves = Kept({4, 1, 2});
  const std::string& stays = Kept({0, 3, 2});
  const std::string& at2 = Kept({2, 3, 2});
  const bool inserts = moving == Moving::kInsert;
  const std::string& splits = inserts ? Kept({4, 2, 2}) : Kept({0, 2, 2});
  Call change = Call::Put(moves, "1");
  if (moving == Moving::kDelete) change = Call::Delete(moves);
  if (inserts) change = Call::Insert(moves, "1");
  // Those that know less come first: each client learns before the next one does.
  auto& all = explored.scenario.participants;
  all = {explored.Begin({Call::Put(inserts ? stays : moves, "0"), Call::Put(at2, "0")}, /*announces=*/true),
         {.program = explored.Do(kLearns, {change}), .may_die = true, .phase = 1}};
  if (moving == Moving::kPutAndDelete)
    all.push_back({.program = explored.Do(kLearns, {Call::Delete(moves)}), .phase = 1});
  if (is_read) all.push_back({.program = explored.Do(kLearns, {Call::Get(moves)}), .phase = 1});
  all.push_back({.program = explored.Do({.learns = true, .activates = true}, {Call::Put(splits, "2")}),
                 .may_die = true,
                 .phase = 1});
  if (is_read && moving == Moving::kPutAndDelete) return;
  ThenGoOn(explored, 2, {Call::Get(moves), Call::Put(moves, "3"), Call::Get(splits), Call::Get(moves)});
}

std::string ProblemOf(const check::Exploration& found) {
  const bool only_waits = found.conclusion == check::Conclusion::kCut;
  return found.conclusion == check::Conclusion::kNothing || only_waits ? "" : found.ToString();
}

}  // namespace farside::index::nessie
