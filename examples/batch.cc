// Many keys at once: batches with an outcome per item, and coroutines whose trips overlap.
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <farside/farside.h>

using farside::AsyncSession;
using farside::Done;
using farside::Error;
using farside::ErrorCode;
using farside::GetItem;
using farside::OkStatus;
using farside::Pool;
using farside::PutItem;
using farside::Result;
using farside::Session;
using farside::Status;
using farside::Table;
using farside::Task;
using farside::Traffic;

namespace {

constexpr size_t kRecords = 60;

// What far memory was asked for since the last call.
void PrintTrips(const std::string& what, const Session& session, Traffic& last) {
  const Traffic now = session.traffic();
  const double operations = static_cast<double>(now.operations - last.operations);
  const double trips = static_cast<double>(now.trips - last.trips);
  std::cout << what << ": " << operations << " operations, " << trips / operations << " trips each\n";
  last = now;
}

// Copies a record. Each co_await is an operation; an error of it ends the task.
Task<Done> Copy(AsyncSession session, const Table& table, std::string from, std::string to) {
  std::string value;
  const bool found = co_await session.Get(table, from, value);
  if (!found) co_return Error(ErrorCode::kNotFound, from + " is not there");
  co_await session.Put(table, to, value);
  co_return Done{};
}

Status Batches(Session& session, const Table& table, std::span<const std::string> keys) {
  Traffic last = session.traffic();

  std::vector<PutItem> puts;
  for (const std::string& key : keys) puts.push_back({.key = key, .value = "some value"});
  if (Status put = session.MultiPut(table, puts); !put.ok()) return put;
  PrintTrips("MultiPut", session, last);

  std::vector<GetItem> gets;  // keep it for the next MultiGet: its strings are used again
  for (const std::string& key : keys) gets.push_back({.key = key});
  gets.push_back({.key = "absent"});
  if (Status got = session.MultiGet(table, gets); !got.ok()) return got;
  PrintTrips("MultiGet", session, last);
  size_t found = 0;
  for (const GetItem& item : gets) {
    if (*item.found && item.value == "some value") ++found;
  }
  std::cout << "  found " << found << " of " << gets.size() << '\n';
  if (found != keys.size()) return Error(ErrorCode::kCorrupt, "a record was lost");

  // The first ten keys are copied at the same time, on this thread.
  std::vector<Task<Done>> copies;
  for (const std::string& key : keys.first(10))
    copies.push_back(Copy(session.Async(), table, key, key + "-copy"));
  if (Status ran = session.RunAll(std::span(copies)); !ran.ok()) return ran;
  for (Task<Done>& copy : copies) {
    if (Result<Done> copied = copy.TakeResult(); !copied.ok()) return copied.error();
  }
  PrintTrips("ten copies as coroutines", session, last);

  const Result<Done> nothing = session.Run(Copy(session.Async(), table, "absent", "copy"));
  std::cout << "a copy of nothing: " << (nothing.ok() ? "made" : nothing.error().message()) << '\n';
  if (nothing.ok()) return Error(ErrorCode::kCorrupt, "nothing was copied");
  return OkStatus();
}

Status Run() {
  Result<Pool> pool = Pool::Open("embedded:?size=16MiB");
  if (!pool.ok()) return pool.error();
  // With room for the records from the start. An empty table has one bucket: inserts that are in flight
  // together would all want that one, and try again and again until the table has grown, with 30 trips each
  // instead of 2.
  Result<Table> table = pool->CreateTable("batch", {.engine = "shard", .options = {{"buckets", "256"}}});
  if (!table.ok()) return table.error();
  Result<Session> session = pool->NewSession();
  if (!session.ok()) return session.error();

  std::vector<std::string> keys;
  for (size_t i = 0; i < kRecords; ++i) keys.push_back("key-" + std::to_string(i));
  if (Status done = Batches(*session, *table, keys); !done.ok()) return done;
  return session->Close();
}

}  // namespace

int main() {
  const Status done = Run();
  if (done.ok()) return 0;
  std::cerr << "batch: " << done.error() << '\n';
  return 1;
}
