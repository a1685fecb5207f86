#include "check/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "check/perform.h"
#include "fabric/ends_client.h"
#include "fabric/op.h"
#include "index/evacuation.h"
#include "pool/client.h"
#include "pool/fsck/fsck.h"
#include "pool/region/describe.h"
#include "pool/region/recover.h"
#include "pool/region/superblock.h"
#include "pool/scoped_flag.h"
#include "store/engines.h"
#include "store/registration.h"

namespace farside::check {
namespace {

using fabric::Client;
using fabric::Op;
using fabric::OpKind;
using fabric::sim::SimClient;
using fabric::sim::SimFabric;

// Far more events than pass between the ends of two operations when clients make progress, joins and leaves
// included.
constexpr uint64_t kMostEventsPerOperation = 3'000'000;
constexpr int kMostAuditRounds = 1000;
// As many keys as any engine has room for, however small its table.
constexpr size_t kKeysThatAlwaysFit = 4;

// Longer than any client is silent unless it is asleep: the longest delays of an operation's trips, added up.
constexpr Nanos kLease = std::chrono::milliseconds(10);

// Small, so that clients meet also in the chunk table; with room for clients that die and come again.
constexpr uint64_t kChunkBytes = 4096;
constexpr uint64_t kFewestChunks = 128;
constexpr uint64_t kChunksPerClient = 16;
constexpr uint32_t kFewestClientSlots = 32;
constexpr uint32_t kClientSlotsPerClient = 8;

pool::FormatOptions FormatFor(const Workload& workload, bool durable) {
  const auto clients = static_cast<uint32_t>(workload.scripts.size());
  return {.client_slots = std::max(kFewestClientSlots, kClientSlotsPerClient * clients),
          .table_slots = 4,
          .chunk_bytes = kChunkBytes,
          .durable = durable};
}

uint64_t RegionBytesFor(const Workload& workload, const index::Engine& engine) {
  const uint64_t chunks = std::max(kFewestChunks, kChunksPerClient * workload.scripts.size());
  return pool::RoundUp(chunks * kChunkBytes + 4 * engine.empty_bytes(), pool::kPage);
}

constexpr char kTable[] = "table";
constexpr char kPassingTable[] = "passing";

OpKind CountedAs(Kind kind) {
  switch (kind) {
    case Kind::kGet: return OpKind::kSearch;
    case Kind::kInsert: return OpKind::kInsert;
    case Kind::kDelete: return OpKind::kDelete;
    case Kind::kPut:
    case Kind::kUpdate:
    case Kind::kCompareAndSet:
    case Kind::kIncrement: return OpKind::kUpdate;
    case Kind::kScan:
    case Kind::kLast:
    case Kind::kSeen: return OpKind::kScan;
  }
  return OpKind::kSearch;
}

// What all participants of a run share.
struct Stage {
  SimFabric& world;
  index::Engine& engine;
  RunReport& report;
  bool may_fill;          // there are so many keys that a table of fixed size may run out of room
  bool auditing = false;  // the faults are over
  std::vector<pool::Geometry> geometries = {};
  std::vector<fabric::FarAddr> roots = {};  // of the table, once a client has opened it; for traces

  // Whether something was broken, so that clients may find themselves cut off.
  bool Excused() const { return !auditing && report.has_faults && (!report.exact || world.fault_fired()); }
  void NoteProblem(std::string what) {
    if (report.problem.empty()) report.problem = std::move(what);
  }
  // All tables are of the engine that is checked.
  index::FindEngine FindEngine() const {
    return [checked = &engine](std::string_view,
                               const index::OptionMap&) -> Result<std::shared_ptr<index::Engine>> {
      return std::shared_ptr<index::Engine>(std::shared_ptr<void>(), checked);
    };
  }
};

enum class Role : uint8_t {
  kWorker,   // runs its script
  kAuditor,  // reads and writes every key, verifies the table, and stays until no dead client has a slot
  kDropper,  // drops the table
};

// A participant: it connects, joins the pool, opens the table (or makes it, if it is the first), does its
// part and leaves. Now and then it is idle, and goes offline. When its client is broken, it connects anew and
// goes on.
class Actor {
 public:
  Actor(int number, Role role, Script script, const Workload& workload)
      : number_(number),
        role_(role),
        script_(std::move(script)),
        lanes_(workload.lanes),
        operations_until_idle_(static_cast<size_t>(workload.operations_until_idle)),
        evacuates_(workload.evacuates),
        drops_at_(workload.drops_a_table ? script_.size() / 2 : kNever) {}

  bool running() const { return client_ != nullptr; }

  void Start(Stage& stage) {
    client_ = std::move(*stage.world.Connect());
    task_.emplace(Live(stage));
    task_->Start();
  }

  // Looks at what has become of it: still running, dead, in need of a new client, or done.
  void HandleProgress(Stage& stage) {
    while (running()) {
      if (static_cast<SimClient&>(*client_).crashed()) {
        if (session_ != nullptr && !session_->pool().online()) ++stage.report.deaths_offline;
        return Disconnect();
      }
      if (!task_->done()) return;
      const Result<Done> end = task_->TakeResult();
      Disconnect();
      if (end.ok()) return;
      const bool broken = fabric::EndsClient(end.error());
      if (!broken || !stage.Excused()) {
        stage.NoteProblem(fmt::format("client {} failed: {}", number_, end.error().ToString()));
      }
      if (broken) Start(stage);
    }
  }

  // Tasks first, then what they use.
  void Disconnect() {
    task_.reset();
    table_.reset();
    session_.reset();
    client_.reset();
  }

 private:
  static constexpr size_t kNever = ~size_t{0};
  static constexpr size_t kOperationsPerEvacuation = 2;
  static constexpr Nanos kLookAtLanes = std::chrono::microseconds(1);

  Task<Done> Live(Stage& stage) {
    Op op(*client_, OpKind::kMaintenance);
    pool::ClientOptions options;
    options.lease.lease = kLease;
    options.operations_per_sync = 3;
    session_ = co_await store::Registration::Join(op, *client_, stage.FindEngine(), options);
    if (role_ == Role::kDropper) {
      co_await session_->tables().Drop(op, kTable);
    } else {
      table_.emplace(
          co_await session_->tables().CreateOrOpen(op, kTable, std::string(stage.engine.name()), {}));
      stage.roots = table_->info.roots;
      co_await RunScript(stage, op);
      co_await session_->pool().ComeOnline(op);
    }
    if (role_ == Role::kAuditor) co_await Audit(stage, op);
    pool::Reached reached;
    if (role_ != Role::kWorker) co_await session_->tables().Walk(op, reached);
    co_await session_->Leave(op);
    if (role_ != Role::kWorker) co_await AccountForEveryByte(stage, op, reached);
    op.End(OpKind::kMaintenance, fabric::OpOutcome::kDone);
    co_return Done{};
  }

  // Ends with an error if the client is broken and the script is to go on with another.
  Task<Done> RunScript(Stage& stage, Op& op) {
    std::vector<Task<Done>> lanes;
    for (int i = 0; i < lanes_; ++i) lanes.push_back(RunLane(stage));
    for (Task<Done>& lane : lanes) lane.Start();
    for (Task<Done>& lane : lanes) {
      while (!lane.done()) co_await op.Pause(kLookAtLanes);
    }
    for (Task<Done>& lane : lanes) {
      const Result<Done> end = lane.TakeResult();
      if (!end.ok()) co_return end.error();
    }
    co_return Done{};
  }

  // One operation after the other, while there are any left.
  Task<Done> RunLane(Stage& stage) {
    Op op(*client_, OpKind::kMaintenance);
    pool::PoolClient& pool = session_->pool();
    while (next_ < script_.size()) {
      const size_t mine = next_++;
      if (mine == drops_at_) co_await MakeAndDropTable(stage, op);
      if (evacuates_ && mine % kOperationsPerEvacuation == 1) co_await Evacuate(op, stage);
      co_await Prepare(op, *table_);
      co_await Perform(stage, script_[mine]);
      if (pool.MaintenanceDue()) co_await pool.Maintain(op);
      if (++performed_ % operations_until_idle_ == 0) co_await Idle(op);
    }
    op.End(OpKind::kMaintenance, fabric::OpOutcome::kDone);
    co_return Done{};
  }

  // Before an operation: the client is online, and the table is still there.
  Task<Done> Prepare(Op& op, index::OpenTable& table) {
    const pool::PoolClient::UnpinnedWait stays_online(session_->pool());
    co_await session_->pool().ComeOnline(op);
    co_await session_->tables().Validate(op, table);
    co_return Done{};
  }

  // Goes offline, if no operation of another lane is in flight, for as long as some operations take.
  Task<Done> Idle(Op& op) {
    pool::PoolClient& pool = session_->pool();
    const bool offline = co_await pool.GoOffline(op);
    if (!offline) co_return Done{};
    co_await op.Pause(Nanos(1000 << (performed_ % 6)));
    if (performed_ % 2 == 0) co_await pool.KeepUp(op);
    co_return Done{};
  }

  // Moves the records in all chunks of this client to other blocks, as in a pool that is full (evac/1). The
  // pool is not: so the copies stand in chunks that are claimed for them. Not part of the history: no
  // operation may notice.
  Task<Done> Evacuate(Op& op, Stage& stage) {
    if (evacuating_) co_return Done{};  // evac/4
    const pool::ScopedFlag busy(evacuating_);
    pool::PoolClient& pool = session_->pool();
    const pool::PoolClient::UnpinnedWait stays_online(pool);
    co_await pool.ComeOnline(op);
    index::Evacuation evacuation(pool, session_->tables(), {&*table_}, [] {});
    for (size_t i = 0; i < pool.nodes(); ++i) {
      const auto node = static_cast<fabric::NodeId>(i);
      pool::Allocator& allocator = pool.allocator(node);
      const pool::EvacuationLimits limits{.any_room = true};
      const std::vector<pool::Allocator::Victim> victims = co_await allocator.BeginEvacuation(op, limits);
      evacuation.Add(node, victims);
      const pool::PoolClient::Pin pin = pool.Begin();
      for (const pool::Allocator::Victim& victim : victims) {
        const fabric::FarAddr room =
            co_await allocator.Allocate(op, victim.block_bytes, pool::BlockUse::kRecords);
        allocator.FreeUnpublished(room, victim.block_bytes);
      }
    }
    co_await evacuation.Move(op);
    stage.report.evacuated += evacuation.moved();
    co_await evacuation.Unlink(op);
    co_return Done{};
  }

  // Fails if the client is broken. A failure without an excuse is a problem of the run.
  Task<Done> Perform(Stage& stage, const ScriptedCall& call) {
    History& history = stage.report.history;
    const OpId id = history.Invoke(number_, call.call());
    ++stage.report.operations;
    Op op(*client_, CountedAs(call.kind));
    const uint64_t catalogs = session_->pool().known_catalog_changes();
    Result<Outcome> outcome = co_await check::Perform(*table_->index, op, call.call()).Outcome();
    if (outcome.ok()) {
      history.Return(id, std::move(*outcome));
      co_return Done{};
    }
    const Error& error = outcome.error();
    if (error.code() == ErrorCode::kOutcomeUnknown) {
      history.LoseAnswer(id);
    } else {
      history.Refuse(id, error.ToString());
    }
    const bool full = error.code() == ErrorCode::kOutOfMemory && stage.may_fill;
    const bool broken = fabric::EndsClient(error);
    if (!full && !IsToRetry(error, catalogs) && !(broken && stage.Excused()))
      stage.NoteProblem(ToString(history[id]));
    if (broken) co_return error;
    co_return Done{};
  }

  // An operation that had to wait may find that a table was made or dropped, and has to check that its own is
  // still there (catalog/5).
  bool IsToRetry(const Error& error, uint64_t catalogs) {
    return error.code() == ErrorCode::kContended && session_->pool().known_catalog_changes() != catalogs;
  }

  // A second table, which clients make, use and drop under each other's feet. Not part of the history: what
  // counts is that nothing of it is left when the run is over.
  Task<Done> MakeAndDropTable(Stage& stage, Op& op) {
    drops_at_ = kNever;
    const Result<Done> done = co_await MakeUseAndDrop(stage, op).Outcome();
    if (done.ok()) co_return Done{};
    const bool dropped_by_another = done.error().code() == ErrorCode::kNotFound;
    const bool slots_taken =
        done.error().code() == ErrorCode::kOutOfMemory;  // by tables that other clients are dropping
    if (!dropped_by_another && !slots_taken) co_return done.error();
    co_return Done{};
  }
  Task<Done> MakeUseAndDrop(Stage& stage, Op& op) {
    index::Tables& tables = session_->tables();
    const std::optional<size_t> size = stage.engine.traits().fixed_size;
    const std::string value = Fitted(fmt::format("of client {}", number_), size);
    {
      index::OpenTable table =
          co_await tables.CreateOrOpen(op, kPassingTable, std::string(stage.engine.name()), {});
      for (const char* text : {"a", "b"}) {
        const std::string key = Fitted(text, size);
        co_await PutInPassing(op, table, key, value);
      }
    }
    co_await tables.Drop(op, kPassingTable);
    co_return Done{};
  }

  Task<Done> PutInPassing(Op& op, index::OpenTable& table, std::string_view key, std::string_view value) {
    while (true) {
      co_await Prepare(op, table);
      const uint64_t catalogs = session_->pool().known_catalog_changes();
      const Result<index::PutOutcome> put = co_await table.index->Put(op, key, value).Outcome();
      if (put.ok()) co_return Done{};
      if (!IsToRetry(put.error(), catalogs)) co_return put.error();
    }
  }

  // The table is whole, and everything that dead clients have left is taken care of: no other client is
  // registered.
  Task<Done> Audit(Stage& stage, Op& op) {
    pool::PoolClient& pool = session_->pool();
    const Result<Done> verified = co_await table_->index->Verify(op).Outcome();
    if (!verified.ok()) stage.NoteProblem("the table is damaged: " + verified.error().message());
    for (int round = 0; round < kMostAuditRounds; ++round) {
      co_await pool.Maintain(op);
      bool alone = true;
      for (size_t node = 0; node < pool.nodes(); ++node) {
        const pool::RegistryView view =
            co_await pool.member(static_cast<fabric::NodeId>(node)).LookAround(op);
        alone &= view.others == 0;
      }
      if (alone) co_return Done{};
      co_await op.Pause(kLease / 8);
    }
    stage.NoteProblem("the slots of dead clients were never released");
    co_return Done{};
  }

  // No client is registered any more: every byte is free, or reachable from the table.
  static Task<Done> AccountForEveryByte(Stage& stage, Op& op, const pool::Reached& reached) {
    for (size_t node = 0; node < stage.geometries.size(); ++node) {
      pool::FsckOptions options;
      options.no_client_runs = true;
      options.read_blocks = false;  // the auditor has verified them
      const pool::FsckReport report = co_await pool::Fsck(op, static_cast<fabric::NodeId>(node),
                                                          stage.geometries[node], reached, options);
      const uint64_t lost =
          report.bytes.held + report.bytes.abandoned + report.bytes.leaked + report.bytes.damaged;
      if (report.ok() && lost == 0) continue;
      stage.NoteProblem(fmt::format("fsck of node {}: {} bytes are neither free nor reachable{}{}", node,
                                    lost, report.findings.empty() ? "" : "; ",
                                    report.findings.empty() ? "" : report.findings[0].what));
    }
    co_return Done{};
  }

  const int number_;
  const Role role_;
  const Script script_;
  const int lanes_;  // operations in flight
  const size_t operations_until_idle_;
  const bool evacuates_;
  bool evacuating_ = false;
  size_t drops_at_;
  size_t next_ = 0;
  size_t performed_ = 0;
  std::unique_ptr<Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::optional<index::OpenTable> table_;
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
      actor.HandleProgress(stage);
      if (actor.running()) ++running;
    }
    if (running == 0) return;
    if (stage.report.history.events() != operation_events || give_up == 0) {
      operation_events = stage.report.history.events();
      give_up = stage.world.events() + kMostEventsPerOperation;
    }
    if (stage.world.Step() && stage.world.events() < give_up) continue;
    stage.NoteProblem(fmt::format("stuck: {} clients wait for ever", running));
    for (Actor& actor : actors) actor.Disconnect();
    return;
  }
}

void DriveOne(Stage& stage, int number, Role role, Script script) {
  std::vector<Actor> actors;
  actors.emplace_back(number, role, std::move(script), Workload());
  Drive(stage, actors);
}

// INVARIANT pool durable/1: what the process that opens a durable region does before it serves clients.
void Recover(const Stage& stage, fabric::NodeId node, std::span<std::byte> survived) {
  pool::Recover(survived, *fabric::ForNode(stage.geometries, node));
}

// Of an ordered table, also all keys at once: before the first one is written, and in the end.
Script AuditScript(const std::vector<std::string>& keys, const index::Engine& engine) {
  const ScriptedCall all{.kind = Kind::kScan, .limit = 2 * keys.size()};
  Script script;
  for (const std::string& key : keys) {
    script.push_back({.kind = Kind::kGet, .key = key});
    if (engine.traits().ordered && script.size() == 1) script.push_back(all);
    script.push_back(
        {.kind = Kind::kPut, .key = key, .value = Fitted("audited", engine.traits().fixed_size)});
    script.push_back({.kind = Kind::kGet, .key = key});
  }
  if (engine.traits().ordered) script.insert(script.end(), {all, {.kind = Kind::kLast}});
  return script;
}

}  // namespace

RunReport Run(index::Engine& engine, const Workload& workload, fabric::sim::SimOptions options) {
  RunReport report;
  options.durable = engine.traits().durable;
  report.exact = options.fault.has_value();
  report.has_faults = options.chaos.has_faults() || report.exact;
  options.chaos.longest_sleep = 3 * kLease;
  options.region_bytes.assign(workload.nodes, RegionBytesFor(workload, engine));
  fabric::sim::Trace* trace = options.trace;
  SimFabric world(std::move(options));
  store::RegisterHandlers(world.calls());
  Stage stage{.world = world,
              .engine = engine,
              .report = report,
              .may_fill = workload.keys.size() > kKeysThatAlwaysFit};
  for (int node = 0; node < workload.nodes; ++node) {
    const std::span<std::byte> memory = world.memory(static_cast<fabric::NodeId>(node));
    stage.geometries.push_back(*pool::FormatVolatile(memory, FormatFor(workload, engine.traits().durable),
                                                     {1, static_cast<uint64_t>(node)}));
  }
  world.set_on_power_up(
      [&stage](fabric::NodeId node, std::span<std::byte> survived) { Recover(stage, node, survived); });
  if (trace != nullptr) {
    trace->set_describe([&stage](fabric::FarAddr at) {
      std::string known = stage.engine.Describe(at, stage.roots);
      const pool::Geometry* const geometry = fabric::ForNode(stage.geometries, at.node);
      return known.empty() && geometry != nullptr ? pool::Describe(at, *geometry) : known;
    });
  }

  std::vector<Actor> actors;
  for (const Script& script : workload.scripts) {
    actors.emplace_back(static_cast<int>(actors.size()), Role::kWorker, script, workload);
  }
  Drive(stage, actors);
  report.script_verbs = world.verbs_posted();
  report.script_steps = world.handler_steps();
  report.fault_fired = world.fault_fired();

  // What clients that left still have in flight may land while the auditor works; new faults would only hide
  // what happened.
  world.StopFaults();
  stage.auditing = true;
  const int auditor = static_cast<int>(actors.size());
  if (report.problem.empty()) DriveOne(stage, auditor, Role::kAuditor, AuditScript(workload.keys, engine));
  if (report.problem.empty()) DriveOne(stage, auditor + 1, Role::kDropper, {});
  if (trace != nullptr) trace->set_describe(nullptr);
  report.verbs = world.verbs_posted();
  report.power_cuts = world.power_cuts();

  report.verdict = CheckLinearizable(report.history);
  if (!report.verdict.ok() && report.problem.empty()) report.problem = ToString(report.verdict);
  return report;
}

}  // namespace farside::check
