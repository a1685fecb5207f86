#include "tools/bench/client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/random.h"
#include "fabric/counters.h"
#include "workload/records.h"

namespace farside::tools {

using workload::Action;
using workload::Request;

namespace {

// Progress is reported once in so many operations: it costs time that would be measured.
constexpr uint64_t kOperationsPerCount = 32;
// A record that is not loaded spoils the run. With very many clients, all of which ask for memory at once,
// that takes patience.
constexpr int kMostLoadAttempts = 100;

}  // namespace

Status BenchClient::Run(BenchPhase& phase, uint32_t depth) {
  const BenchPhase::Options& options = phase.options();
  phase_ = &phase;
  workload::Shape shape = options.shape;
  shape.seed = Random(shape.seed).Fork(options.stream).seed();
  generator_.emplace(shape, phase.frontier(), number_);
  tally_ = BenchTally();
  counting_ = false;
  left_ = 0;
  tally_.began = table_->Now();
  tally_.ended = tally_.began;
  deadline_ = options.duration.has_value() ? tally_.began + *options.duration : Nanos::max();
  workers_.clear();
  working_ = depth;
  for (uint32_t i = 0; i < depth; ++i) workers_.push_back(Worker());
  return table_->RunAll(workers_);
}

bool BenchClient::done() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Task<Done>& task) { return task.done(); });
}

// The end of an operation is the begin of the next one, so the clock is read once for each.
Task<Done> BenchClient::Worker() {
  if (!std::exchange(counting_, true)) table_->counters() = fabric::Counters();
  const BenchPhase::Options& options = phase_->options();
  Buffers buffers;
  buffers.key.resize(options.key_size);
  buffers.value.resize(options.value_size);
  Nanos begin = table_->Now();
  while (true) {
    const std::optional<Request> request = NextRequest(begin);
    if (!request.has_value()) break;
    workload::FillKey(request->record, buffers.key);
    const Result<Done> performed = co_await Perform(*request, buffers).Outcome();
    const Nanos end = table_->Now();
    if (!performed.ok()) {
      phase_->Fail(performed.error());
      break;
    }
    tally_.latency[static_cast<size_t>(request->action)].Record(static_cast<uint64_t>((end - begin).count()));
    if (options.window > Nanos{0}) CountInWindow(end);
    begin = end;
    if (++tally_.operations % kOperationsPerCount == 0) phase_->Count(kOperationsPerCount);
    // A table may ask for a sync before the next operation, so this is looked at after each.
    if (!table_->MaintenanceDue()) continue;
    const Result<Done> maintained = co_await table_->Maintain().Outcome();
    if (!maintained.ok()) phase_->Fail(maintained.error());
    begin = table_->Now();
  }
  if (--working_ == 0) co_await End();
  co_return Done{};
}

Task<Done> BenchClient::End() {
  tally_.ended = table_->Now();
  tally_.counters = table_->counters();
  phase_->Leave();
  const Result<Done> waited = co_await table_->AwaitEnd(*phase_).Outcome();
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

// No coroutine: an operation has no frame that only chooses.
Task<Done> BenchClient::Perform(Request request, Buffers& buffers) {
  switch (request.action) {
    case Action::kRead: break;
    case Action::kUpdate: return Update(buffers);
    case Action::kInsert: return Insert(request.record, buffers);
    case Action::kReadModifyWrite: return ReadAndUpdate(buffers);
    case Action::kScan: return Scan(request.length, buffers);
  }
  return Read(buffers);
}

Task<Done> BenchClient::Read(Buffers& buffers) {
  const Result<bool> found = co_await table_->Get(buffers.key, buffers.read).Outcome();
  if (!found.ok()) {
    if (!Survives(found.error(), "read")) co_return found.error();
    co_return Done{};
  }
  if (!phase_->options().verify) co_return Done{};
  if (!*found) {
    CountError(fmt::format("the key \"{}\" was inserted and is absent", Escape(buffers.key)));
  } else if (!workload::IsValueOf(buffers.key, buffers.read, phase_->options().value_size)) {
    CountError(fmt::format("the key \"{}\" has a value that was never written: \"{}\"", Escape(buffers.key),
                           Escape(std::string_view(buffers.read).substr(0, 64))));
  }
  co_return Done{};
}

Task<Done> BenchClient::ReadAndUpdate(Buffers& buffers) {
  co_await Read(buffers);
  co_await Update(buffers);
  co_return Done{};
}

Task<Done> BenchClient::Scan(uint32_t length, Buffers& buffers) {
  buffers.range.from = buffers.key;
  buffers.page.clear();
  const Result<bool> scanned = co_await table_->Scan(buffers.range, length, buffers.page).Outcome();
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
      return fmt::format("a scan returned \"{}\" with a value that was never written", Escape(page[i].key));
  }
  return "";
}

Task<Done> BenchClient::Update(Buffers& buffers) {
  FillNewValue(buffers);
  const Result<bool> updated = co_await table_->Update(buffers.key, buffers.value).Outcome();
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

// The load tries again when other clients were in the way.
Task<bool> BenchClient::InsertUncontended(Buffers& buffers) {
  const int attempts = phase_->options().shape.mix.is_load ? kMostLoadAttempts : 1;
  for (int attempt = 1;; ++attempt) {
    Result<bool> inserted = true;
    if (phase_->options().puts) {
      const Result<Done> put = co_await table_->Put(buffers.key, buffers.value).Outcome();
      if (!put.ok()) inserted = put.error();
    } else {
      inserted = co_await table_->Insert(buffers.key, buffers.value).Outcome();
    }
    const bool contended = !inserted.ok() && inserted.error().code() == ErrorCode::kContended;
    if (!contended || attempt == attempts) co_return inserted;
  }
}

void BenchClient::CountInWindow(Nanos end) {
  const Nanos since = end - tally_.began;
  const auto window = static_cast<size_t>(since / phase_->options().window);
  if (window >= tally_.windows.size()) tally_.windows.resize(window + 1);
  ++tally_.windows[window];
  const uint64_t growth = table_->growth();
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

}  // namespace farside::tools
