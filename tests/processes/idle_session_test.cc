// Sessions of other processes that are idle, and a pool that is nearly full.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "store/engines.h"
#include "tests/processes/binary.h"
#include "tests/processes/worker.h"
#include "tests/support/live_records.h"
#include "tests/support/sanitized.h"
#include "tools/common/daemon.h"

namespace farside::processes {
namespace {

using tools::Daemon;

constexpr double kPoolBytes = 32.0 * 1024 * 1024;

constexpr int kMostSparse = 9000;
constexpr size_t kSparseBytes = 4000;
std::string SparseKey(int i) { return "sparse-" + std::to_string(i); }

// Puts records of one size, as many as `share` of the pool or until it is full, and deletes all but a few at
// random.
bool LeaveSparseChunks(Session& session, const Table& table, double share, double kept) {
  const std::string value(kSparseBytes, 'v');
  const auto most = std::min(kMostSparse, static_cast<int>(share * kPoolBytes / kSparseBytes));
  int count = 0;
  for (; count < most; ++count) {
    const Status put = session.Put(table, SparseKey(count), value);
    if (!put.ok() && put.error().code() != ErrorCode::kOutOfMemory) return false;
    if (!put.ok()) break;
  }
  Random random(3);
  for (int i = 0; i < count; ++i) {
    if (random.Below(1000) < static_cast<uint64_t>(1000 * kept)) continue;
    if (!session.Delete(table, SparseKey(i)).ok()) return false;
  }
  return true;
}

// The life of a process that uses a session for a while and then only keeps it, until it is killed.
int StayIdle(const std::string& url, double share, double kept) {
  Result<Pool> pool = Pool::Open(url);
  if (!pool.ok()) return 1;
  Result<Table> table = pool->OpenTable(kTable);
  Result<Session> session = pool->NewSession();
  if (!table.ok() || !session.ok() || !LeaveSparseChunks(*session, *table, share, kept)) return 1;
  if (!session->Put(*table, "idle", "yes").ok()) return 1;
  while (true) ::pause();
}

// An engine, and the way to the node.
struct Case {
  std::string engine;
  std::string scheme;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.engine << "_" << one.scheme;
}

std::vector<Case> EveryEngine() {
  std::vector<Case> cases;
  for (const store::EngineEntry& engine : store::Engines())
    cases.push_back({std::string(engine.name), "shm"});
  return cases;
}

class IdleSession : public testing::TestWithParam<Case> {
 protected:
  // A pool of a memory node, with a process that owns sparse chunks and is idle: of `share` of the pool,
  // `kept` of their records are there.
  void Begin(double share, double kept, uint64_t records) {
    UrlPipe pipe;
    child_.emplace([&] { return StayIdle(pipe.Read(), share, kept); });
    const std::string& engine = GetParam().engine;
    Result<Daemon> daemon = Daemon::Start({"--quiet", "--size", "32MiB", "--listen", "tcp://127.0.0.1:0",
                                           "--shm", "idle-" + std::to_string(::getpid())},
                                          BinaryPath());
    ASSERT_TRUE(daemon.ok()) << daemon.error().ToString();
    daemon_ = std::make_unique<Daemon>(std::move(*daemon));
    const std::string url = daemon_->Url(GetParam().scheme);
    Result<Pool> pool = Pool::Open(url);
    ASSERT_TRUE(pool.ok()) << pool.error().ToString();
    pool_ = std::move(*pool);
    Result<Table> table = pool_->CreateTable(kTable, {.engine = engine, .options = OptionsFor(records)});
    ASSERT_TRUE(table.ok()) << table.error().ToString();
    table_ = std::move(*table);
    Result<Session> session = pool_->NewSession();
    ASSERT_TRUE(session.ok()) << session.error().ToString();
    session_ = std::move(*session);
    records_.Use(*session_, *table_);
    pipe.Tell(url);
    while (true) {
      const Result<std::optional<std::string>> there = session_->Get(*table_, "idle");
      ASSERT_TRUE(there.ok()) << there.error().ToString();
      if (there->has_value()) return;
    }
  }

  static index::OptionMap OptionsFor(uint64_t records) {
    const auto entry = std::ranges::find_if(
        store::Engines(), [](const store::EngineEntry& one) { return one.name == GetParam().engine; });
    return (*entry->make({}))->OptionsFor({.records = records});
  }
  // Of the pool, keys and values that the idle process has left.
  double IdleShare() {
    double bytes = 0;
    for (int i = 0; i < kMostSparse; ++i) {
      const Result<std::optional<std::string>> value = session_->Get(*table_, SparseKey(i));
      EXPECT_TRUE(value.ok()) << value.error().ToString();
      if (value.ok() && value->has_value())
        bytes += static_cast<double>(SparseKey(i).size() + (*value)->size());
    }
    return bytes / kPoolBytes;
  }

  std::optional<Child> child_;
  std::unique_ptr<Daemon> daemon_;
  std::optional<Pool> pool_;
  std::optional<Table> table_;
  std::optional<Session> session_;
  LiveRecords records_{kPoolBytes};
};
INSTANTIATE_TEST_SUITE_P(, IdleSession, testing::ValuesIn(EveryEngine()), testing::PrintToStringParamName());

// The slower way.
using IdleSessionOverTcp = IdleSession;
INSTANTIATE_TEST_SUITE_P(, IdleSessionOverTcp,
                         testing::Values(Case{std::string(store::DefaultEngine()), "tcp"}),
                         testing::PrintToStringParamName());

TEST_P(IdleSession, OfAnotherProcess_DoesNotMakeAPutFail) {
  // Given a pool with a process that has put and deleted many records, and has a session that it does not use
  // any more.
  // When another process puts records of many sizes, and deletes others, so that 70 % are live: ten times as
  // many bytes as the pool has.
  // Expect that no put fails: memory comes back although the idle session does nothing.
  ASSERT_NO_FATAL_FAILURE(Begin(/*share=*/0.25, /*kept=*/0.02, /*records=*/5'000));
  //
  // It is nearly all that fits. The index of nessie is in blocks of six sizes, in a chunk each: at 68 %, one
  // run in six finds the pool full.
  const double most_live = GetParam().engine == "nessie" ? 0.64 : 0.7;
  records_.Churn(/*pools=*/kSanitized ? 2 : 10, most_live, /*largest=*/65'536);
  records_.ExpectAll();
}

TEST_P(IdleSessionOverTcp, OfAnotherProcess_DoesNotMakeAPutFail) {
  // Given, when and expect the same, with twice as many bytes as the pool has.
  ASSERT_NO_FATAL_FAILURE(Begin(/*share=*/0.25, /*kept=*/0.02, /*records=*/5'000));
  records_.Churn(/*pools=*/2, /*most_live=*/0.7, /*largest=*/65'536);
  records_.ExpectAll();
}

TEST_P(IdleSession, OfAnotherProcess_OwnsAllChunks_TheyAreEmptiedForSmallRecords) {
  // Given a process that has filled the pool with values of 4,000 bytes, has deleted 85 % of them, and is
  // idle.
  // When another process puts values of 500 bytes at once, until the pool is full.
  // Expect that nearly all of the pool is in use, and that every record is there.
  //
  // An index of buckets is a part of what is in use. That of continuity grows by one block that is twice as
  // large, for which there may be no room in one piece; so it has its size from the beginning.
  const bool grows_in_one_piece = GetParam().engine == "continuity";
  const bool has_buckets = grows_in_one_piece || GetParam().engine == "reference";
  ASSERT_NO_FATAL_FAILURE(Begin(/*share=*/1, /*kept=*/0.15, grows_in_one_piece ? 45'000 : 28'000));
  records_.PutUntilFull(500);
  const double idle = IdleShare();
  EXPECT_GT(idle, 0.1);
  EXPECT_GE(idle + records_.live_share(), has_buckets ? 0.7 : 0.8);
  records_.ExpectAll();
}

TEST_P(IdleSession, OfAnotherProcess_DropAndCreateNeverFail) {
  // Given a pool with a process that owns sparse chunks and is idle.
  // When another process fills a table of it, drops it, and makes it again, time and again.
  // Expect that there is always room for the table, and for as many records, or nearly.
  ASSERT_NO_FATAL_FAILURE(Begin(/*share=*/0.25, /*kept=*/0.02, /*records=*/5'000));
  const std::string value(30'000, 'v');
  int first = 0;
  for (int round = 0; round < 3; ++round) {
    Result<Table> table =
        pool_->CreateTable("filled", {.engine = GetParam().engine, .options = OptionsFor(1'000)});
    ASSERT_TRUE(table.ok()) << table.error().ToString() << " in round " << round;
    int count = 0;
    for (; session_->Put(*table, "key-" + std::to_string(count), value).ok(); ++count) continue;
    if (round == 0) first = count;
    EXPECT_GT(count, first * 3 / 4) << "round " << round;
    EXPECT_GT(count, 500);
    const Status dropped = pool_->DropTable("filled");
    ASSERT_TRUE(dropped.ok()) << dropped.error().ToString();
  }
}

}  // namespace
}  // namespace farside::processes
