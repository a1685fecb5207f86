#include "check/run.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "fabric/run.h"

namespace farside::check {
namespace {

using fabric::Client;
using fabric::Op;
using fabric::OpKind;
using fabric::sim::SimClient;
using fabric::sim::SimFabric;
using index::Index;

// Far more events than pass between the ends of two operations when clients make progress.
constexpr uint64_t kMostEventsPerOperation = 3'000'000;
// As many keys as any engine has room for, however small its table.
constexpr size_t kKeysThatAlwaysFit = 4;

OpKind CountedAs(Kind kind) {
  switch (kind) {
    case Kind::kGet: return OpKind::kSearch;
    case Kind::kInsert: return OpKind::kInsert;
    case Kind::kDelete: return OpKind::kDelete;
    case Kind::kPut:
    case Kind::kUpdate:
    case Kind::kCompareAndSet:
    case Kind::kIncrement: return OpKind::kUpdate;
  }
  return OpKind::kSearch;
}

Task<Outcome> Perform(Index& index, Op& op, const ScriptedCall& call) {
  switch (call.kind) {
    case Kind::kGet: {
      std::string value;
      const bool found = co_await index.Get(op, call.key, value);
      Found answer;
      if (found) answer.value = std::move(value);
      co_return Outcome(std::move(answer));
    }
    case Kind::kPut: {
      const bool inserted = co_await index.Put(op, call.key, call.value);
      co_return Outcome(Stored{inserted});
    }
    case Kind::kInsert: {
      const bool applied = co_await index.Insert(op, call.key, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kUpdate: {
      const bool applied = co_await index.Update(op, call.key, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kDelete: {
      const bool applied = co_await index.Delete(op, call.key);
      co_return Outcome(Applied{applied});
    }
    case Kind::kCompareAndSet: {
      const bool applied = co_await index.CompareAndSet(op, call.key, call.expected, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kIncrement: {
      const uint64_t counter = co_await index.Increment(op, call.key, call.delta);
      co_return Outcome(Counted{counter});
    }
  }
  co_return Error(ErrorCode::kUnsupported, "no such operation");
}

// What all participants of a run share.
struct Stage {
  SimFabric& world;
  index::Engine& engine;
  RunReport& report;
  bool may_fill;           // there are so many keys that a table of fixed size may run out of room
  bool auditing = false;   // the faults are over

  // Whether something was broken, so that clients may find themselves cut off.
  bool Excused() const { return !auditing && report.has_faults && (!report.exact || world.fault_fired()); }
  void NoteProblem(std::string what) {
    if (report.problem.empty()) report.problem = std::move(what);
  }
};

// A participant: it connects, runs its script, and connects anew when its client is broken.
class Actor {
 public:
  Actor(int number, Script script) : number_(number), script_(std::move(script)) {}

  bool running() const { return client_ != nullptr; }

  void Start(Stage& stage) {
    client_ = std::move(*stage.world.Connect());
    index_ = stage.engine.Open(*client_);
    task_.emplace(RunScript(stage));
    task_->Start();
  }

  // Looks at what has become of it: still running, dead, in need of a new client, or done.
  void Attend(Stage& stage) {
    while (running()) {
      if (static_cast<SimClient&>(*client_).crashed()) return Leave();
      if (!task_->done()) return;
      const Result<Done> end = task_->TakeResult();
      Leave();
      if (!end.ok()) Start(stage);  // the connection is broken
    }
  }

  // Tasks first, then what they use.
  void Leave() {
    task_.reset();
    index_.reset();
    client_.reset();
  }

 private:
  // Ends with an error if the client is broken and the script is to go on with another.
  Task<Done> RunScript(Stage& stage) {
    History& history = stage.report.history;
    while (next_ < script_.size()) {
      const ScriptedCall& call = script_[next_++];
      const OpId id = history.Invoke(number_, call.call());
      ++stage.report.operations;
      Op op(*client_, CountedAs(call.kind));
      Result<Outcome> outcome = co_await Perform(*index_, op, call).Outcome();
      if (outcome.ok()) {
        history.Return(id, std::move(*outcome));
        continue;
      }
      if (NoteFailure(stage, id, outcome.error())) co_return outcome.error();
    }
    if (stage.auditing) {
      Op op(*client_, OpKind::kMaintenance);
      const Result<Done> verified = co_await index_->Verify(op).Outcome();
      if (!verified.ok()) stage.NoteProblem("the table is damaged: " + verified.error().message());
    }
    co_return Done{};
  }

  // True if the client is broken. A failure without an excuse is a problem of the run.
  static bool NoteFailure(Stage& stage, OpId id, const Error& error) {
    History& history = stage.report.history;
    const bool unknown = error.code() == ErrorCode::kOutcomeUnknown;
    const bool broken = unknown || error.code() == ErrorCode::kFenced || error.code() == ErrorCode::kUnavailable;
    if (unknown) {
      history.LoseAnswer(id);
    } else {
      history.Refuse(id, error.ToString());
    }
    const bool full = error.code() == ErrorCode::kOutOfMemory && stage.may_fill;
    if (!full && !(broken && stage.Excused())) stage.NoteProblem(ToString(history[id]));
    return broken;
  }

  const int number_;
  const Script script_;
  size_t next_ = 0;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Index> index_;
  std::optional<Task<Done>> task_;
};

// Steps the world until all actors have ended, or nothing happens any more.
void Drive(Stage& stage, std::vector<Actor>& actors) {
  for (Actor& actor : actors) actor.Start(stage);
  uint64_t operation_events = 0;
  uint64_t give_up = 0;
  while (true) {
    size_t running = 0;
    for (Actor& actor : actors) {
      actor.Attend(stage);
      if (actor.running()) ++running;
    }
    if (running == 0) return;
    if (stage.report.history.events() != operation_events || give_up == 0) {
      operation_events = stage.report.history.events();
      give_up = stage.world.events() + kMostEventsPerOperation;
    }
    if (stage.world.Step() && stage.world.events() < give_up) continue;
    stage.NoteProblem(fmt::format("stuck: {} clients wait for ever", running));
    for (Actor& actor : actors) actor.Leave();
    return;
  }
}

Task<Done> FormatTable(Client& client, index::Engine& engine) {
  Op op(client, OpKind::kMaintenance);
  co_await engine.Format(op);
  co_return Done{};
}

Script AuditScript(const std::vector<std::string>& keys) {
  Script script;
  for (const std::string& key : keys) {
    script.push_back({.kind = Kind::kGet, .key = key});
    script.push_back({.kind = Kind::kPut, .key = key, .value = "audited"});
    script.push_back({.kind = Kind::kGet, .key = key});
  }
  return script;
}

}  // namespace

RunReport Run(index::Engine& engine, const Workload& workload, fabric::sim::SimOptions options) {
  RunReport report;
  report.exact = options.fault.has_value();
  report.has_faults = options.chaos.has_faults() || report.exact;
  options.region_bytes = {engine.region_bytes()};
  SimFabric world(std::move(options));
  Stage stage{.world = world, .engine = engine, .report = report, .may_fill = workload.keys.size() > kKeysThatAlwaysFit};

  {
    const std::unique_ptr<Client> client = std::move(*world.Connect());
    const Status formatted = fabric::Run(*client, FormatTable(*client, engine));
    if (!formatted.ok()) stage.NoteProblem("the table could not be made: " + formatted.error().ToString());
  }
  std::vector<Actor> actors;
  for (const Script& script : workload.scripts) actors.emplace_back(static_cast<int>(actors.size()), script);
  Drive(stage, actors);
  report.script_verbs = world.verbs_posted();
  report.fault_fired = world.fault_fired();

  // What is still in flight of those who left may land under the auditor's feet; new faults would only
  // hide what happened.
  if (report.problem.empty()) {
    world.StopFaults();
    stage.auditing = true;
    std::vector<Actor> auditor;
    auditor.emplace_back(static_cast<int>(actors.size()), AuditScript(workload.keys));
    Drive(stage, auditor);
  }
  report.verbs = world.verbs_posted();

  report.verdict = CheckLinearizable(report.history);
  if (!report.verdict.ok() && report.problem.empty()) report.problem = ToString(report.verdict);
  return report;
}

}  // namespace farside::check
