#include "tools/bench/client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "fabric/op.h"
#include "workload/records.h"

namespace farside::tools {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using workload::Action;
using workload::Request;

namespace {

// Progress is told once in so many operations: it costs time that would be measured.
constexpr uint64_t kOperationsPerCount = 32;
// A record that is not loaded spoils the run. With very many clients, all of which ask for memory at once, that takes
// patience.
constexpr int kMostLoadAttempts = 100;

}  // namespace

// ---- BenchTally ----------------------------------------------------------------------------------------

void BenchTally::Add(const BenchTally& other) {
  for (size_t action = 0; action < latency.size(); ++action) latency[action].Merge(other.latency[action]);
  counters.Add(other.counters);
  // The time from the first client's begin to the last one's end.
  began = operations == 0 ? other.began : std::min(began, other.began);
  ended = std::max(ended, other.ended);
  operations += other.operations;
  scanned += other.scanned;
  errors += other.errors;
  windows.resize(std::max(windows.size(), other.windows.size()));
  for (size_t i = 0; i < other.windows.size(); ++i) windows[i] += other.windows[i];
  for (const auto& [step, at] : other.growth) {
    const auto [known, is_new] = growth.emplace(step, at);
    if (!is_new) known->second = std::min(known->second, at);
  }
  if (first_problem.empty()) first_problem = other.first_problem;
}

// ---- BenchPhase ----------------------------------------------------------------------------------------

uint64_t BenchPhase::Take(uint64_t& first) {
  if (options_.duration.has_value()) return kLargestPortion;
  first = taken_.fetch_add(portion_, std::memory_order_relaxed);
  return first < options_.operations ? std::min(portion_, options_.operations - first) : 0;
}

void BenchPhase::Fail(const Error& error) {
  const std::scoped_lock lock(mutex_);
  if (!error_.has_value()) error_.emplace(error);
  failed_.store(true, std::memory_order_relaxed);
}

// ---- BenchClient ---------------------------------------------------------------------------------------

BenchClient::BenchClient(uint64_t number, std::unique_ptr<fabric::Client> client, pool::ClientOptions options)
    : number_(number), client_(std::move(client)), options_(options) {}

// Tasks first, then what they use.
BenchClient::~BenchClient() {
  workers_.clear();
  table_.reset();
  session_.reset();
}

Task<bool> BenchClient::Join(index::FindEngine find_engine, std::string table, std::string engine,
                             index::OptionMap options) {
  Op op(*client_, OpKind::kMaintenance);
  session_ = co_await store::Session::Join(op, *client_, std::move(find_engine), options_);
  table_.emplace(
      co_await session_->tables().CreateOrOpen(op, std::move(table), std::move(engine), std::move(options)));
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return table_->created;
}

Task<Done> BenchClient::Leave(bool drop) {
  Op op(*client_, OpKind::kMaintenance);
  const std::string name = table_->info.name;
  table_.reset();
  if (drop) co_await session_->tables().Drop(op, name);
  co_await session_->Leave(op);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> BenchClient::GiveSignOfLife() {
  Op op(*client_, OpKind::kMaintenance);
  co_await session_->pool().Sync(op, /*raise=*/false);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

void BenchClient::Start(BenchPhase& phase, uint32_t depth) {
  const BenchPhase::Options& options = phase.options();
  phase_ = &phase;
  workload::Shape shape = options.shape;
  shape.seed = Random(shape.seed).Fork(options.stream).seed();
  generator_.emplace(shape, phase.frontier(), number_);
  tally_ = BenchTally();
  client_->counters() = fabric::Counters();
  left_ = 0;
  tally_.began = client_->Now();
  tally_.ended = tally_.began;
  deadline_ = options.duration.has_value() ? tally_.began + *options.duration : Nanos::max();
  client_->set_concurrency(depth);
  workers_.clear();
  working_ = depth;
  for (uint32_t i = 0; i < depth; ++i) workers_.push_back(Worker());
  for (Task<Done>& worker : workers_) worker.Start();
}

bool BenchClient::done() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Task<Done>& task) { return task.done(); });
}

// The end of an operation is the begin of the next one, so the clock is read once for each.
Task<Done> BenchClient::Worker() {
  const BenchPhase::Options& options = phase_->options();
  Buffers buffers;
  buffers.key.resize(options.key_size);
  buffers.value.resize(options.value_size);
  Nanos begin = client_->Now();
  while (true) {
    const std::optional<Request> request = NextRequest(begin);
    if (!request.has_value()) break;
    const Result<Done> performed = co_await Perform(*request, buffers).Outcome();
    const Nanos end = client_->Now();
    if (!performed.ok()) {
      phase_->Fail(performed.error());
      break;
    }
    tally_.latency[static_cast<size_t>(request->action)].Record(static_cast<uint64_t>((end - begin).count()));
    if (options.window > Nanos{0}) CountInWindow(end);
    begin = end;
    if (++tally_.operations % kOperationsPerCount == 0) phase_->Count(kOperationsPerCount);
    // A table may ask for a sync before the next operation, so this is looked at after each.
    if (maintaining_ || !session_->pool().MaintenanceDue()) continue;
    const Result<Done> maintained = co_await Maintain().Outcome();
    if (!maintained.ok()) phase_->Fail(maintained.error());
    begin = client_->Now();
  }
  if (--working_ > 0) co_return Done{};
  tally_.ended = client_->Now();
  tally_.counters = client_->counters();
  phase_->Leave();
  const Result<Done> waited = co_await WaitForOthers().Outcome();
  if (!waited.ok()) phase_->Fail(waited.error());
  co_return Done{};
}

std::optional<Request> BenchClient::NextRequest(Nanos now) {
  if (now >= deadline_ || phase_->failed() || number_ >= phase_->options().workers) return std::nullopt;
  if (left_ == 0) left_ = phase_->Take(next_);
  if (left_ == 0) return std::nullopt;
  --left_;
  const uint64_t number = next_++;
  if (phase_->options().shape.mix.is_load) return Request{.action = Action::kInsert, .record = number};
  return generator_->Next();
}

void BenchClient::FillNewValue(Buffers& buffers) {
  workload::FillValue(buffers.key, versions_++, buffers.value);
}

Task<Done> BenchClient::Perform(Request request, Buffers& buffers) {
  workload::FillKey(request.record, buffers.key);
  switch (request.action) {
    case Action::kRead: co_await Read(buffers); break;
    case Action::kUpdate: co_await Update(buffers); break;
    case Action::kInsert: co_await Insert(request.record, buffers); break;
    case Action::kReadModifyWrite:
      co_await Read(buffers);
      co_await Update(buffers);
      break;
    case Action::kScan: co_await Scan(request.length, buffers); break;
  }
  co_return Done{};
}

Task<Done> BenchClient::Read(Buffers& buffers) {
  Op op(*client_, OpKind::kSearch);
  const Result<bool> found = co_await index().Get(op, buffers.key, buffers.read).Outcome();
  if (!found.ok()) {
    if (!Survives(found.error(), "read")) co_return found.error();
    co_return Done{};
  }
  if (!phase_->options().verify) co_return Done{};
  if (!*found) {
    CountError(fmt::format("the key \"{}\" was inserted and is absent", Escape(buffers.key)));
  } else if (!workload::IsValueOf(buffers.key, buffers.read, phase_->options().value_size)) {
    CountError(fmt::format("the key \"{}\" has a value that nobody wrote: \"{}\"", Escape(buffers.key),
                           Escape(std::string_view(buffers.read).substr(0, 64))));
  }
  co_return Done{};
}

Task<Done> BenchClient::Scan(uint32_t length, Buffers& buffers) {
  buffers.range.from = buffers.key;
  buffers.page.clear();
  Op op(*client_, OpKind::kScan);
  const Result<bool> scanned = co_await index().Scan(op, buffers.range, length, buffers.page).Outcome();
  if (!scanned.ok()) {
    if (!Survives(scanned.error(), "scan")) co_return scanned.error();
    co_return Done{};
  }
  tally_.scanned += buffers.page.size();
  std::string problem = ProblemOf(buffers, length);
  if (!problem.empty()) CountError(std::move(problem));
  co_return Done{};
}

// The scan begins at a key that is there and stays there.
std::string BenchClient::ProblemOf(const Buffers& buffers, uint32_t length) const {
  const std::vector<Record>& page = buffers.page;
  if (page.empty() || page.front().key != buffers.key)
    return fmt::format("a scan from \"{}\", which was inserted, does not begin with it", Escape(buffers.key));
  if (page.size() > length) return fmt::format("a scan of {} records returned {}", length, page.size());
  for (size_t i = 0; i < page.size(); ++i) {
    if (i > 0 && page[i].key <= page[i - 1].key)
      return fmt::format("a scan returned \"{}\" behind \"{}\"", Escape(page[i].key),
                         Escape(page[i - 1].key));
    if (!workload::IsValueOf(page[i].key, page[i].value, phase_->options().value_size))
      return fmt::format("a scan returned \"{}\" with a value that nobody wrote", Escape(page[i].key));
  }
  return "";
}

Task<Done> BenchClient::Update(Buffers& buffers) {
  FillNewValue(buffers);
  Op op(*client_, OpKind::kUpdate);
  const Result<bool> updated = co_await index().Update(op, buffers.key, buffers.value).Outcome();
  if (!updated.ok()) {
    if (!Survives(updated.error(), "update")) co_return updated.error();
  } else if (!*updated) {
    CountError(
        fmt::format("the key \"{}\" was inserted and could not be updated: absent", Escape(buffers.key)));
  }
  co_return Done{};
}

Task<Done> BenchClient::Insert(uint64_t record, Buffers& buffers) {
  FillNewValue(buffers);
  const Result<bool> inserted = co_await InsertUncontended(buffers).Outcome();
  if (!inserted.ok()) {
    if (!Survives(inserted.error(), "insert")) co_return inserted.error();
  } else if (!*inserted) {
    CountError(fmt::format("the key \"{}\" is there before it was inserted", Escape(buffers.key)));
  }
  if (!phase_->options().shape.mix.is_load) phase_->frontier().Acknowledge(record);
  co_return Done{};
}

// The load tries again when others were in the way.
Task<bool> BenchClient::InsertUncontended(Buffers& buffers) {
  const int attempts = phase_->options().shape.mix.is_load ? kMostLoadAttempts : 1;
  for (int attempt = 1;; ++attempt) {
    Op op(*client_, OpKind::kInsert);
    Result<bool> inserted = co_await index().Insert(op, buffers.key, buffers.value).Outcome();
    const bool contended = !inserted.ok() && inserted.error().code() == ErrorCode::kContended;
    if (!contended || attempt == attempts) co_return inserted;
  }
}

void BenchClient::CountInWindow(Nanos end) {
  const Nanos since = end - tally_.began;
  const auto window = static_cast<size_t>(since / phase_->options().window);
  if (window >= tally_.windows.size()) tally_.windows.resize(window + 1);
  ++tally_.windows[window];
  const uint64_t growth = index().growth();
  if (growth > growth_seen_) tally_.growth.emplace(growth, since);
  growth_seen_ = growth;
}

void BenchClient::CountError(std::string what) {
  if (++tally_.errors == 1) tally_.first_problem = std::move(what);
}

bool BenchClient::Survives(const Error& error, const char* what) {
  if (error.code() != ErrorCode::kContended && error.code() != ErrorCode::kCorrupt) return false;
  CountError(fmt::format("{}: {}", what, error.ToString()));
  return true;
}

Task<Done> BenchClient::Maintain() {
  maintaining_ = true;
  Op op(*client_, OpKind::kMaintenance);
  const Result<Done> maintained = co_await session_->pool().Maintain(op).Outcome();
  maintaining_ = false;
  if (!maintained.ok()) co_return maintained.error();
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// What others retire can be used again only when this client has said that it has moved on.
Task<Done> BenchClient::WaitForOthers() {
  while (!phase_->over() && !phase_->failed()) {
    Op op(*client_, OpKind::kMaintenance);
    co_await op.Pause(phase_->options().idle_pause);
    // To look around at everybody takes more, and is not needed each time.
    if (session_->pool().NeedsGrace() || session_->pool().MaintenanceDue()) {
      co_await Maintain();
    } else {
      co_await session_->pool().Sync(op, /*raise=*/false);
    }
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
  }
  co_return Done{};
}

}  // namespace farside::tools
