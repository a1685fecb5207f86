// Several threads change the same records: a counter by Increment, and a list of words by CompareAndSet.
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <farside/farside.h>

using farside::Error;
using farside::ErrorCode;
using farside::OkStatus;
using farside::Pool;
using farside::Result;
using farside::Session;
using farside::Status;
using farside::Table;

namespace {

constexpr int kThreads = 4;
constexpr uint64_t kRounds = 1000;

// Reads, changes, and writes back if no other session has changed it meanwhile.
Status Append(Session& session, const Table& table, const std::string& key, const std::string& word) {
  std::string before;
  while (true) {
    const Result<bool> found = session.Get(table, key, before);
    if (!found.ok()) return found.error();
    const std::string after = *found ? before + ' ' + word : word;
    const Result<bool> written =
        *found ? session.CompareAndSet(table, key, before, after) : session.Insert(table, key, after);
    if (!written.ok()) return written.error();
    if (*written) return OkStatus();
  }
}

// What one thread does, with a session of its own.
Status Work(Pool pool, const Table& table, int thread) {
  Result<Session> session = pool.NewSession();
  if (!session.ok()) return session.error();
  for (uint64_t i = 0; i < kRounds; ++i) {
    const Result<uint64_t> now = session->Increment(table, "rounds");
    if (!now.ok()) return now.error();
  }
  if (Status done = Append(*session, table, "finished", "thread-" + std::to_string(thread)); !done.ok())
    return done;
  return session->Close();
}

Status Count() {
  Result<Pool> pool = Pool::Open("embedded:?size=16MiB");
  if (!pool.ok()) return pool.error();
  Result<Table> table = pool->CreateTable("counters");
  if (!table.ok()) return table.error();

  std::vector<Status> outcomes(kThreads, OkStatus());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] { outcomes[thread] = Work(*pool, *table, thread); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& outcome : outcomes) {
    if (!outcome.ok()) return outcome;
  }

  Result<Session> session = pool->NewSession();
  if (!session.ok()) return session.error();
  const Result<uint64_t> rounds = session->Increment(*table, "rounds", 0);
  if (!rounds.ok()) return rounds.error();
  const Result<std::optional<std::string>> finished = session->Get(*table, "finished");
  if (!finished.ok()) return finished.error();
  std::cout << kThreads << " threads counted to " << *rounds << ".\n";
  std::cout << "In the order in which they finished: " << finished->value_or("nobody") << '\n';
  if (*rounds != kThreads * kRounds) return Error(ErrorCode::kCorrupt, "some rounds were lost");
  return session->Close();
}

}  // namespace

int main() {
  const Status done = Count();
  if (done.ok()) return 0;
  std::cerr << "counters: " << done.error() << '\n';
  return 1;
}
