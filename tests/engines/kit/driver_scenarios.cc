#include "tests/engines/kit/driver_scenarios.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "index/kit/retry_policy.h"
#include "tests/engines/kit/toy_table.h"

namespace farside::index::toy {
namespace {

constexpr Nanos kLease = std::chrono::milliseconds(10);  // of a TableMember

// One client of a toy table, and operations that are under way at once.
struct Scenario {
  ToyState state;
  TableWorld world;
  ToyMember member{world, state};
  std::vector<std::optional<Task<PutOutcome>>> puts;
  std::vector<std::optional<Task<std::string>>> searches;

  // The client learns by a sync that the table was made; only a later change of the catalog is news.
  explicit Scenario(bool share_searches = false) : state{.share_searches = share_searches} {
    member.Now(member.Maintain());
  }

  void StartPut(std::string key, std::string value) {
    puts.emplace_back(member.Put(std::move(key), std::move(value)));
    puts.back()->Start();
  }
  void StartSearch(std::string key) {
    searches.emplace_back(member.Get(std::move(key)));
    searches.back()->Start();
  }
  // Until all operations that were not destroyed have ended.
  void Finish() {
    const auto ended = [](const auto& operation) { return !operation.has_value() || operation->done(); };
    world.Drive([&] {
      return std::all_of(puts.begin(), puts.end(), ended) &&
             std::all_of(searches.begin(), searches.end(), ended);
    });
  }
  Result<std::string> FoundBy(size_t search) {
    if (!searches[search]->done())
      return Error(ErrorCode::kUnavailable, "it waits for something that never comes");
    return searches[search]->TakeResult();
  }
  void ExpectFound(size_t search, std::string_view expected) {
    const Result<std::string> found = FoundBy(search);
    if (!found.ok()) {
      state.Complain(fmt::format("search {} failed: {}", search, found.error().ToString()));
    } else if (*found != expected) {
      state.Complain(fmt::format("search {} found {} and not {}", search, *found, expected));
    }
  }
  Result<PutOutcome> ResultOf(size_t put) {
    if (!puts[put]->done()) return Error(ErrorCode::kUnavailable, "it waits for something that never comes");
    return puts[put]->TakeResult();
  }
  void ExpectPut(size_t put, PutOutcome expected) {
    const Result<PutOutcome> result = ResultOf(put);
    if (!result.ok()) {
      state.Complain(fmt::format("put {} failed: {}", put, result.error().ToString()));
    } else if (*result != expected) {
      state.Complain(fmt::format("put {} came to another outcome than expected", put));
    }
  }
  void ExpectError(const Error* error, ErrorCode expected) {
    if (error == nullptr) {
      state.Complain(fmt::format("an operation succeeded and should have failed with {}", Name(expected)));
    } else if (error->code() != expected) {
      state.Complain(fmt::format("an operation failed with {}", error->ToString()));
    }
  }
  template <class T>
  void ExpectError(const Result<T>& result, ErrorCode expected) {
    ExpectError(result.ok() ? nullptr : &result.error(), expected);
  }
  void ExpectAttempts(std::vector<int> expected) {
    if (state.attempts != expected)
      state.Complain(fmt::format("there were {} attempts, or others than expected", state.attempts.size()));
  }
  void ExpectValue(std::string_view key, std::string_view expected) {
    const auto record = state.records.find(key);
    const std::string value = record == state.records.end() ? "absent" : record->second;
    if (value != expected) state.Complain(fmt::format("the value is {} and not {}", value, expected));
  }
  std::string Problem() {
    if (!world.problem.empty()) return world.problem;
    return state.problem;
  }
};

// A put under way, and some that wait behind it; the first of those gets its turn.
void StartThreePuts(Scenario& scenario) {
  scenario.StartPut("k", "a");
  scenario.StartPut("k", "b");
  scenario.StartPut("k", "c");
}

constexpr bool kShared = true;

// A key with the value "a", and a search of it that is on its way for long, as the script has it.
void StartSearchOfA(Scenario& scenario, Step step) {
  scenario.state.records.emplace("k", "a");
  scenario.state.script = {step};
  scenario.StartSearch("k");
}

}  // namespace

std::string ChangesOfOneKeyGoOneAtATime() {
  Scenario scenario;
  Task<bool> inserted = scenario.member.Insert("k", "1");
  Task<bool> deleted = scenario.member.Delete("k");
  Task<bool> inserted_again = scenario.member.Insert("k", "2");
  for (Task<bool>* task : {&inserted, &deleted, &inserted_again}) task->Start();
  scenario.world.Drive([&] { return inserted_again.done(); });
  for (Task<bool>* task : {&inserted, &deleted, &inserted_again}) {
    if (!task->done() || !task->TakeResult().value()) scenario.state.Complain("a change found no effect");
  }
  scenario.ExpectValue("k", "2");
  return scenario.Problem();
}

std::string ChangesOfTwoKeysGoAtOnce() {
  Scenario scenario;
  scenario.StartPut("k", "a");
  scenario.StartPut("other", "b");
  scenario.Finish();
  if (scenario.state.most_running != 2) scenario.state.Complain("changes of two keys waited for each other");
  return scenario.Problem();
}

std::string PutsThatWaitAreCoalesced() {
  Scenario scenario;
  StartThreePuts(scenario);
  scenario.StartPut("k", "d");
  // A passenger is done no earlier than the change that took it along.
  scenario.world.Drive([&] { return scenario.puts[2]->done(); });
  scenario.ExpectValue("k", "d");
  scenario.Finish();
  scenario.ExpectAttempts({0, 0});
  scenario.ExpectPut(0, PutOutcome::kInserted);
  for (size_t put : {1, 2, 3}) scenario.ExpectPut(put, PutOutcome::kReplaced);
  return scenario.Problem();
}

std::string ChangesThatDifferAreNotCoalesced() {
  Scenario scenario;
  StartThreePuts(scenario);
  Task<bool> deleted = scenario.member.Delete("k");
  deleted.Start();
  scenario.StartPut("k", "d");
  scenario.Finish();
  // The first, the second with the third, the delete, the fourth.
  scenario.ExpectAttempts({0, 0, 0, 0});
  if (!deleted.done() || !deleted.TakeResult().value()) scenario.state.Complain("the delete found nothing");
  scenario.ExpectPut(3, PutOutcome::kInserted);
  scenario.ExpectValue("k", "d");
  return scenario.Problem();
}

std::string PassengersShareAnError() {
  Scenario scenario;
  scenario.state.script = {Step{}, Step::Fail(ErrorCode::kCorrupt)};
  StartThreePuts(scenario);
  scenario.Finish();
  scenario.ExpectAttempts({0, 0});
  for (size_t put : {1, 2}) scenario.ExpectError(scenario.ResultOf(put), ErrorCode::kCorrupt);
  return scenario.Problem();
}

std::string OutOfMemoryForAPassenger_TheChangeGoesOnWithItsOwnValue() {
  Scenario scenario;
  scenario.state.most_value_bytes = 8;
  scenario.StartPut("k", "a");
  scenario.StartPut("k", "b");
  scenario.StartPut("k", "much too long");
  scenario.Finish();
  // The second with the value of the third, the second with its own, the third.
  scenario.ExpectAttempts({0, 0, 0, 0});
  scenario.ExpectPut(1, PutOutcome::kReplaced);
  scenario.ExpectError(scenario.ResultOf(2), ErrorCode::kOutOfMemory);
  scenario.ExpectValue("k", "b");
  return scenario.Problem();
}

std::string OutOfMemoryAlone_IsReported() {
  Scenario scenario;
  scenario.state.most_value_bytes = 8;
  scenario.StartPut("k", "much too long");
  scenario.Finish();
  scenario.ExpectAttempts({0});
  scenario.ExpectError(scenario.ResultOf(0), ErrorCode::kOutOfMemory);
  return scenario.Problem();
}

std::string CarrierIsDestroyedInDoubt_PassengersDoNotKnow() {
  Scenario scenario;
  scenario.state.script = {Step{}, Step::HangInDoubt()};
  StartThreePuts(scenario);
  scenario.world.Drive([&] { return scenario.state.attempts.size() == 2; });
  scenario.puts[1].reset();
  scenario.Finish();
  scenario.ExpectAttempts({0, 0});
  scenario.ExpectError(scenario.ResultOf(2), ErrorCode::kOutcomeUnknown);
  return scenario.Problem();
}

std::string CarrierIsDestroyedBeforeItDidAnything_PassengersGoOn() {
  Scenario scenario;
  scenario.state.script = {Step{}, Step::Hang()};
  StartThreePuts(scenario);
  scenario.world.Drive([&] { return scenario.state.attempts.size() == 2; });
  scenario.puts[1].reset();
  scenario.Finish();
  scenario.ExpectAttempts({0, 0, 0});
  scenario.ExpectPut(2, PutOutcome::kReplaced);
  scenario.ExpectValue("k", "c");
  return scenario.Problem();
}

// ---- searches that share trips -----------------------------------------------------------------------

std::string SearchesThatWaitShareTheNext() {
  Scenario scenario(kShared);
  StartSearchOfA(scenario, Step::Late());
  scenario.StartPut("k", "b");
  scenario.world.Drive([&] { return scenario.puts[0]->done(); });
  if (scenario.searches[0]->done()) scenario.state.Complain("the first search is not late");
  for (int i = 0; i < 3; ++i) scenario.StartSearch("k");
  scenario.Finish();
  // The first search, the put, and one for the three others.
  scenario.ExpectAttempts({0, 0, 0});
  scenario.ExpectFound(0, "a");
  for (size_t search : {1, 2, 3}) scenario.ExpectFound(search, "b");
  return scenario.Problem();
}

std::string SearchesOfTwoKeysGoAtOnce() {
  Scenario scenario(kShared);
  StartSearchOfA(scenario, Step::Late());
  scenario.StartSearch("other");
  scenario.world.Drive([&] { return scenario.searches[1]->done(); });
  if (scenario.searches[0]->done()) scenario.state.Complain("a search waited for one of another key");
  scenario.ExpectFound(1, "absent");
  scenario.Finish();
  return scenario.Problem();
}

std::string SearchesAreAloneByDefault() {
  Scenario scenario;
  StartSearchOfA(scenario, Step::Late());
  scenario.StartSearch("k");
  scenario.world.Drive([&] { return scenario.searches[1]->done(); });
  if (scenario.searches[0]->done()) scenario.state.Complain("a search waited for another one");
  scenario.Finish();
  scenario.ExpectAttempts({0, 0});
  return scenario.Problem();
}

std::string SearchFails_TheOthersSearchForThemselves() {
  Scenario scenario(kShared);
  StartSearchOfA(scenario, Step{});
  scenario.state.script = {Step::Fail(ErrorCode::kCorrupt)};
  for (int i = 0; i < 3; ++i) scenario.StartSearch("k");
  scenario.Finish();
  // The first, the second for all, and the third for itself and the fourth.
  scenario.ExpectAttempts({0, 0, 0});
  scenario.ExpectError(scenario.FoundBy(1), ErrorCode::kCorrupt);
  for (size_t search : {2, 3}) scenario.ExpectFound(search, "a");
  return scenario.Problem();
}

std::string SearchIsDestroyed_TheOthersSearchForThemselves() {
  Scenario scenario(kShared);
  StartSearchOfA(scenario, Step{});
  scenario.state.script = {Step::Hang()};
  for (int i = 0; i < 3; ++i) scenario.StartSearch("k");
  scenario.world.Drive([&] { return scenario.state.attempts.size() == 2; });
  scenario.searches[1].reset();
  scenario.Finish();
  scenario.ExpectAttempts({0, 0, 0});
  for (size_t search : {0, 2, 3}) scenario.ExpectFound(search, "a");
  return scenario.Problem();
}

// ---- attempts ----------------------------------------------------------------------------------------

std::string AttemptsUnderOnePinAreBounded() {
  Scenario scenario;
  scenario.state.script.assign(9, Step::Retry());
  scenario.StartPut("k", "a");
  scenario.Finish();
  scenario.ExpectAttempts({0, 1, 2, 3, 4, 5, 6, 7, 0, 1});
  scenario.ExpectPut(0, PutOutcome::kInserted);
  return scenario.Problem();
}

std::string ContendedChangeWaitsWithoutPinOrDraft() {
  Scenario scenario;
  scenario.state.script = {Step::FailWithDraft()};
  scenario.StartPut("k", "a");
  scenario.world.Drive([&] { return scenario.state.ended == 1; });
  if (scenario.member.pool().operations_in_flight() != 0) scenario.state.Complain("it waits with a pin");
  if (scenario.state.change->draft.owned()) scenario.state.Complain("it keeps its draft without a pin");
  if (scenario.member.pool().idle()) scenario.state.Complain("the client may leave under a waiting change");
  scenario.Finish();
  scenario.ExpectPut(0, PutOutcome::kInserted);
  return scenario.Problem();
}

std::string ContendedChangeGivesUpAfterSomeLeases() {
  Scenario scenario;
  scenario.state.always_contended = true;
  const Nanos began = scenario.world.fabric.Now();
  scenario.StartPut("k", "a");
  scenario.Finish();
  const Nanos waited = scenario.world.fabric.Now() - began;
  scenario.ExpectError(scenario.ResultOf(0), ErrorCode::kContended);
  if (waited < RetryPolicy::kMostLeases * kLease) scenario.state.Complain("it gave up too early");
  if (waited > 2 * RetryPolicy::kMostLeases * kLease) scenario.state.Complain("it gave up too late");
  return scenario.Problem();
}

std::string ContendedSearchWaitsWithoutPin() {
  Scenario scenario;
  scenario.state.records["k"] = "a";
  scenario.state.script = {Step::Fail(ErrorCode::kContended)};
  Task<std::string> found = scenario.member.Get("k");
  found.Start();
  scenario.world.Drive([&] { return scenario.state.ended == 1; });
  if (scenario.member.pool().operations_in_flight() != 0) scenario.state.Complain("it waits with a pin");
  scenario.world.Drive([&] { return found.done(); });
  if (!found.done() || found.TakeResult().value() != "a") scenario.state.Complain("it was not found");
  scenario.ExpectAttempts({0, 0});
  return scenario.Problem();
}

std::string OtherErrorsEndAChangeAtOnce() {
  Scenario scenario;
  scenario.state.script = {Step::Fail(ErrorCode::kCorrupt)};
  scenario.StartPut("k", "a");
  scenario.Finish();
  scenario.ExpectAttempts({0});
  scenario.ExpectError(scenario.ResultOf(0), ErrorCode::kCorrupt);
  return scenario.Problem();
}

// ---- dropped tables ----------------------------------------------------------------------------------

namespace {

Task<Done> MaintainAndPause(ToyMember& member) {
  co_await member.Maintain();
  co_await member.Pause(std::chrono::microseconds(100));
  co_return Done{};
}

// Another client drops the table while operations of the first wait. `over` says when they have ended. The
// first client syncs all the time: the other one waits for that.
template <class Over>
void DropUnder(Scenario& scenario, Over over) {
  ToyMember dropper(scenario.world, scenario.state);
  Task<Done> drop = dropper.Drop();
  drop.Start();
  std::optional<Task<Done>> maintained;
  scenario.world.Drive([&] {
    scenario.state.dropped = drop.done();
    if (maintained.has_value() && maintained->done()) maintained.reset();
    if (!maintained.has_value() && !drop.done()) {
      maintained.emplace(MaintainAndPause(scenario.member));
      maintained->Start();
    }
    return drop.done() && !maintained.has_value() && over();
  });
  if (!drop.done()) return scenario.state.Complain("the drop never ended");
  const Result<Done> dropped = drop.TakeResult();
  if (!dropped.ok()) scenario.state.Complain("the drop failed: " + dropped.error().ToString());
}

}  // namespace

std::string TableIsDroppedWhileAChangeWaits() {
  Scenario scenario;
  scenario.state.always_contended = true;
  scenario.StartPut("k", "a");
  DropUnder(scenario, [&] { return scenario.puts[0]->done(); });
  scenario.ExpectError(scenario.ResultOf(0), ErrorCode::kContended);
  return scenario.Problem();
}

std::string TableIsDroppedWhileAChangeIsQueued() {
  Scenario scenario;
  scenario.state.always_contended = true;
  scenario.StartPut("k", "a");
  Task<bool> queued = scenario.member.Delete("k");
  queued.Start();
  DropUnder(scenario, [&] { return queued.done(); });
  if (queued.done()) scenario.ExpectError(queued.TakeResult(), ErrorCode::kContended);
  return scenario.Problem();
}

std::string TableIsDroppedWhileASearchWaits() {
  Scenario scenario;
  scenario.state.always_contended = true;
  Task<std::string> search = scenario.member.Get("k");
  search.Start();
  DropUnder(scenario, [&] { return search.done(); });
  if (search.done()) scenario.ExpectError(search.TakeResult(), ErrorCode::kContended);
  return scenario.Problem();
}

std::string TableIsDroppedWhileASearchIsQueued() {
  Scenario scenario(kShared);
  scenario.state.always_contended = true;
  for (int i = 0; i < 2; ++i) scenario.StartSearch("k");
  DropUnder(scenario, [&] { return scenario.searches[1]->done(); });
  scenario.Finish();
  scenario.ExpectError(scenario.FoundBy(1), ErrorCode::kContended);
  return scenario.Problem();
}

}  // namespace farside::index::toy
