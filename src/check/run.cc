#include "check/run.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "fabric/op.h"

namespace farside::check {
namespace {

using fabric::Client;
using fabric::Op;
using fabric::OpKind;
using fabric::sim::SimClient;
using fabric::sim::SimFabric;
using index::Index;

// Far more events than any run needs whose clients make progress.
constexpr uint64_t kMostEvents = 3'000'000;

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

// A participant: it connects, runs its script, and connects anew when its client is broken.
class Actor {
 public:
  Actor(int number, Script script) : number_(number), script_(std::move(script)) {}

  bool running() const { return client_ != nullptr; }
  fabric::ClientId id() const { return client_->id(); }

  void Start(SimFabric& world, index::Engine& engine, RunReport& report, bool verify) {
    client_ = std::move(*world.Connect());
    index_ = engine.Open(*client_);
    task_.emplace(RunScript(report, verify));
    task_->Start();
  }

  // Looks at what has become of it: still running, dead, in need of a new client, or done.
  void Attend(SimFabric& world, index::Engine& engine, RunReport& report, bool verify) {
    if (static_cast<SimClient&>(*client_).crashed()) return Leave();
    if (!task_->done()) return;
    const Result<Done> end = task_->TakeResult();
    Leave();
    if (!end.ok()) Start(world, engine, report, verify);  // the connection is broken
  }

  // Tasks first, then what they use.
  void Leave() {
    task_.reset();
    index_.reset();
    client_.reset();
  }

 private:
  // Ends with an error if the client is broken and the script is to go on with another.
  Task<Done> RunScript(RunReport& report, bool verify) {
    while (next_ < script_.size()) {
      const ScriptedCall& call = script_[next_++];
      const OpId id = report.history.Invoke(number_, call.call());
      ++report.operations;
      Op op(*client_, CountedAs(call.kind));
      Result<Outcome> outcome = co_await Perform(*index_, op, call).Outcome();
      if (outcome.ok()) {
        report.history.Return(id, std::move(*outcome));
        continue;
      }
      if (NoteFailure(report, id, outcome.error())) co_return outcome.error();
    }
    if (verify) {
      Op op(*client_, OpKind::kMaintenance);
      Result<Done> verified = co_await index_->Verify(op).Outcome();
      if (!verified.ok() && report.problem.empty()) report.problem = "the table is damaged: " + verified.error().message();
    }
    co_return Done{};
  }

  static void NoteProblem(RunReport& report, OpId id) {
    if (report.problem.empty()) report.problem = ToString(report.history[id]);
  }

  // True if the client is broken. Where nothing goes wrong, nobody is cut off either.
  bool NoteFailure(RunReport& report, OpId id, const Error& error) const {
    switch (error.code()) {
      case ErrorCode::kOutcomeUnknown:
        report.history.LoseAnswer(id);
        if (!report.has_faults) NoteProblem(report, id);
        return true;
      case ErrorCode::kFenced:
      case ErrorCode::kUnavailable:
        report.history.Refuse(id, error.ToString());
        if (!report.has_faults) NoteProblem(report, id);
        return true;
      case ErrorCode::kCorrupt:
      case ErrorCode::kContended:
        report.history.Refuse(id, error.ToString());
        NoteProblem(report, id);
        return false;
      default: report.history.Refuse(id, error.ToString()); return false;
    }
  }

  const int number_;
  const Script script_;
  size_t next_ = 0;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Index> index_;
  std::optional<Task<Done>> task_;
};

// Steps the world until all actors have ended.
void Drive(SimFabric& world, index::Engine& engine, std::vector<Actor>& actors, RunReport& report, bool verify) {
  for (Actor& actor : actors) actor.Start(world, engine, report, verify);
  const uint64_t give_up = world.events() + kMostEvents;
  size_t running = actors.size();
  while (running > 0) {
    const bool moved = world.Step();
    running = 0;
    for (Actor& actor : actors) {
      if (actor.running()) actor.Attend(world, engine, report, verify);
      if (actor.running()) ++running;
    }
    if (running == 0) break;
    if (moved && world.events() < give_up) continue;
    if (report.problem.empty()) report.problem = fmt::format("stuck: {} clients wait for ever", running);
    for (Actor& actor : actors) actor.Leave();
    return;
  }
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
  report.has_faults = options.chaos.has_faults() || options.fault.has_value();
  options.region_bytes = {engine.region_bytes()};
  SimFabric world(std::move(options));

  std::vector<Actor> actors;
  for (const Script& script : workload.scripts) actors.emplace_back(static_cast<int>(actors.size()), script);
  Drive(world, engine, actors, report, /*verify=*/false);
  report.script_verbs = world.verbs_posted();
  report.fault_fired = world.fault_fired();

  // What is still in flight of those who left may land under the auditor's feet; new faults would only
  // hide what happened.
  if (report.problem.empty()) {
    world.StopFaults();
    std::vector<Actor> auditor;
    auditor.emplace_back(static_cast<int>(actors.size()), AuditScript(workload.keys));
    Drive(world, engine, auditor, report, /*verify=*/true);
  }
  report.verbs = world.verbs_posted();

  report.verdict = CheckLinearizable(report.history);
  if (!report.verdict.ok() && report.problem.empty()) report.problem = ToString(report.verdict);
  return report;
}

}  // namespace farside::check
