// Whatever the bytes of a pool are, the commands that look at it end, with a report or a line, and change
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "fabric/op.h"
#include "index/reference/layout.h"
#include "pool/region/layout.h"
#include "store/engines.h"
#include "tools/common/pool_session.h"
#include "tools/export/export.h"
#include "tools/fsck/fsck.h"
#include "tools/record/one_record.h"
#include "tools/scan/scan.h"
#include "tools/status/status.h"
#include "tools/table/table.h"

namespace farside::tools {
namespace {

using fabric::Op;

Task<Done> FillTable(Op& op, store::Registration& session, std::string name, int keys) {
  index::OptionMap options;
  options["buckets"] = "8";
  const index::OpenTable table = co_await session.tables().CreateOrOpen(op, name, "reference", options);
  for (int i = 0; i < keys; ++i) {
    const std::string key = "key" + std::to_string(i);
    const std::string value(static_cast<size_t>(i % 7) * 100, 'v');
    co_await table.index->Put(op, key, value);
  }
  // Larger than an entry can say.
  const std::string large(300'000, 'l');
  if (name == "large") co_await table.index->Put(op, "large", large);
  co_return Done{};
}

class DamagedPool : public testing::Test {
 protected:
  DamagedPool()
      : path_(std::filesystem::temp_directory_path() / fmt::format("farside_damaged_{}", ::getpid())),
        url_("file:" + path_.string()) {
    std::filesystem::remove(path_);
  }
  ~DamagedPool() override { std::filesystem::remove(path_); }

  void Must(const Status& status) { ASSERT_TRUE(status.ok()) << status.error().ToString(); }

  // Two tables, and no registered client.
  std::string MakePool() {
    {
      pool::OpenOptions options;
      options.format.client_slots = 4;
      options.format.table_slots = 4;
      Result<PoolSession> session = PoolSession::Open(url_ + "?size=1MiB", options, store::MakeEngine);
      EXPECT_TRUE(session.ok());
      Must(session->Run([](Op& op, store::Registration& s) { return FillTable(op, s, "small", 40); }));
      Must(session->Run([](Op& op, store::Registration& s) { return FillTable(op, s, "large", 3); }));
      Must(session->Leave());
    }
    return Read();
  }
  std::string Read() {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  // The exit code of a command, which has said something in at most one line if it is no success.
  int Run(TableCommand::Verb verb, const std::string& name) {
    TableCommand command;
    command.verb = verb;
    command.url = url_;
    command.name = name;
    command.engine = "reference";
    bool said_something = false;
    const int code = Run([&] { return Table(command); }, said_something);
    EXPECT_TRUE(said_something);
    return code;
  }
  template <class Command>
  int Run(const Command& command, bool& said_something) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = command();
    const std::string out = testing::internal::GetCapturedStdout();
    const std::string err = testing::internal::GetCapturedStderr();
    EXPECT_LE(std::count(err.begin(), err.end(), '\n'), 1) << err;
    EXPECT_THAT(code, testing::AnyOf(kSuccess, kDoesNotHold, kCouldNotRun)) << err;
    said_something = out.empty() != err.empty();
    return code;
  }
  template <class Command>
  int Run(const Command& command) {
    bool said_something = false;
    return Run(command, said_something);
  }

  // Flips a few bits, most of them where bytes matter.
  static std::string Damage(std::string bytes, Random& random) {
    const uint64_t flips = 1 + random.Below(4);
    for (uint64_t i = 0; i < flips; ++i) {
      const uint64_t where = random.Below(4);
      uint64_t at = random.Below(bytes.size());
      if (where == 0) at = random.Below(4 * pool::kPage);
      // Wherever there is something.
      while (where > 1 && bytes[at] == 0) at = random.Below(bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 << random.Below(8)));
    }
    return bytes;
  }

  const std::filesystem::path path_;
  const std::string url_;
};

// Given a pool with two tables. When nothing is wrong. Expect a clean report that counts what was put.
TEST_F(DamagedPool, NotDamaged_IsClean) {
  const std::string bytes = MakePool();
  const Result<PoolReport> report = CheckPool(url_);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->notes(), 0u);
  ASSERT_EQ(report->tables.size(), 2u);
  for (const CheckedTable& table : report->tables) {
    ASSERT_TRUE(table.size.has_value());
    EXPECT_EQ(table.size->keys, table.name == "small" ? 40u : 4u);
  }
  EXPECT_EQ(report->bytes().reachable, report->tables[0].size->bytes + report->tables[1].size->bytes);
  EXPECT_EQ(Read(), bytes) << "a check changes nothing";
}

// Given a pool. When random bits of its file are flipped. Expect fsck, list and show to end, and the file to
// be as it was.
TEST_F(DamagedPool, RandomFlips_EveryCommandThatLooksEndsAndChangesNothing) {
  const std::string good = MakePool();
  int found = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::string bytes = Damage(good, random);
    Write(bytes);
    const Result<PoolReport> report = CheckPool(url_);
    if (report.ok()) {
      EXPECT_EQ(report->bytes().Total(), good.size());
    } else {
      EXPECT_EQ(report.error().message().find('\n'), std::string::npos);
    }
    if (!report.ok() || !report->ok()) ++found;
    Run(TableCommand::Verb::kList, "");
    Run(TableCommand::Verb::kShow, "small");
    Run(TableCommand::Verb::kShow, "large");
    EXPECT_TRUE(Read() == bytes) << "the file has changed";
    if (HasFailure()) return;
  }
  EXPECT_GT(found, 200) << "most flips hit something that is checked";
}

// Given a pool. When random bits are flipped, and a table is made or dropped nevertheless. Expect an end; and
// if it could not be done before anything was decided, the file as it was.
TEST_F(DamagedPool, RandomFlips_CreateAndDropEnd) {
  const std::string good = MakePool();
  for (uint64_t seed = 1000; seed < 1200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::string bytes = Damage(good, random);
    Write(bytes);
    const int created = Run(TableCommand::Verb::kCreate, "new");
    EXPECT_TRUE(created == kSuccess || Read() == bytes) << "the file has changed";
    Run(TableCommand::Verb::kDrop, "large");
    if (HasFailure()) return;
  }
}

// Given a pool. When random bits are flipped, and its records are looked at. Expect an end, and the file as
// it was; and an end too when they are changed.
TEST_F(DamagedPool, RandomFlips_CommandsOnRecordsEnd) {
  const std::string good = MakePool();
  const std::string exported = path_.string() + ".jsonl";
  for (uint64_t seed = 2000; seed < 2100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::string bytes = Damage(good, random);
    Write(bytes);
    Run([&] { return Get({.url = url_, .table = "small", .key = "key7"}); });
    Run([&] { return Get({.url = url_, .table = "large", .key = "large"}); });
    Run([&] { return Scan({.url = url_, .table = "small"}); });
    Run([&] { return Export({.url = url_, .table = "large", .file = exported}); });
    Run([&] { return PrintStatus({.url = url_}); });
    Run([&] { return PrintStatus({.url = url_, .json = true}); });
    EXPECT_TRUE(Read() == bytes) << "the file has changed";
    Run([&] { return Put({.url = url_, .table = "small", .key = "key7", .value = "new"}); });
    Run([&] { return Del({.url = url_, .table = "large", .key = "large"}); });
    if (HasFailure()) break;
  }
  std::filesystem::remove(exported);
  std::filesystem::remove(exported + ".partial");
}

// ---- what is said about damage ----------------------------------------------------------------------------

MATCHER_P(IsAbout, text, "") { return arg.what.find(text) != std::string::npos; }

// Flips a bit of the first block whose value is `letters`.
std::string WithDamagedValue(std::string bytes, const std::string& letters) {
  const size_t at = bytes.find(letters);
  EXPECT_NE(at, std::string::npos);
  bytes[at + letters.size() / 2] ^= 1;
  return bytes;
}

// Where the buckets of a table are in the file.
Task<uint64_t> FirstBucketOf(Op& op, store::Registration& session, std::string name) {
  const index::OpenTable table = co_await session.tables().Open(op, std::move(name));
  co_return index::reference::FirstBucket(table.info.roots.front()).offset;
}

// Given a pool with a table two of whose buckets have changed places, which only Verify finds. When a block
// of another table is damaged as well. Expect both to be reported.
TEST_F(DamagedPool, BrokenInvariantAndDamagedBlock_AreBothReported) {
  std::string bytes = MakePool();
  Result<PoolSession> session = PoolSession::Open(url_, {.read_only = true}, store::MakeEngine);
  ASSERT_TRUE(session.ok());
  const Result<uint64_t> first =
      session->Run([](Op& op, store::Registration& s) { return FirstBucketOf(op, s, "small"); });
  ASSERT_TRUE(first.ok());
  const auto bucket = bytes.begin() + static_cast<ptrdiff_t>(*first);
  constexpr ptrdiff_t kBucket = sizeof(index::reference::Bucket);
  std::swap_ranges(bucket, bucket + kBucket, bucket + kBucket);
  Write(WithDamagedValue(bytes, std::string(1000, 'l')));
  const Result<PoolReport> report = CheckPool(url_);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->damages(), 2u);
  EXPECT_THAT(report->nodes[0].findings, testing::Contains(IsAbout("in a bucket that is not its own")));
  EXPECT_THAT(report->nodes[0].findings, testing::Contains(IsAbout("table large has a damaged block")));
}

// Given a table whose walk does not come to its end. When Verify finds a damaged block, and the check of the
// bytes one with the same text, which may be another one. Expect both to be reported: Verify may have met one
// that the walk has not.
TEST_F(DamagedPool, DamagedBlockAndIncompleteWalk_WhatVerifySaysIsKept) {
  std::string bytes = MakePool();
  Result<PoolSession> session = PoolSession::Open(url_, {.read_only = true}, store::MakeEngine);
  ASSERT_TRUE(session.ok());
  const Result<uint64_t> first =
      session->Run([](Op& op, store::Registration& s) { return FirstBucketOf(op, s, "small"); });
  ASSERT_TRUE(first.ok());
  constexpr size_t kBucket = sizeof(index::reference::Bucket);
  std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(*first + 7 * kBucket), kBucket, '\xff');  // the last one
  Write(WithDamagedValue(bytes, std::string(600, 'v')));
  const Result<PoolReport> report = CheckPool(url_);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->complete);
  const std::string why = "the checksum of a block does not match its bytes";
  EXPECT_THAT(report->nodes[0].findings, testing::Contains(IsAbout("table small has a damaged block")));
  EXPECT_THAT(report->nodes[0].findings, testing::Contains(IsAbout("table small: " + why)));
  EXPECT_THAT(report->nodes[0].findings, testing::Contains(IsAbout("table small was not walked to its end")));
}

// Given a record whose block is damaged. When it is looked for, scanned, or overwritten. Expect the command
// to say that the table is damaged, and what to run.
TEST_F(DamagedPool, DamagedRecord_CommandsSayThatTheTableIsDamaged) {
  Write(WithDamagedValue(MakePool(), std::string(300'000, 'l')));
  const std::string said =
      "table large is damaged: the checksum of a block does not match its bytes; run: "
      "farside fsck " +
      url_;
  const auto says = [&](const auto& command) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_EQ(command(), kCouldNotRun);
    testing::internal::GetCapturedStdout();
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr(said));
  };
  says([&] { return Get({.url = url_, .table = "large", .key = "large"}); });
  says([&] { return Scan({.url = url_, .table = "large"}); });
  says([&] { return Export({.url = url_, .table = "large", .file = path_.string() + ".jsonl"}); });
  std::filesystem::remove(path_.string() + ".jsonl.partial");
}

// ---- tables that this build does not know -----------------------------------------------------------------

// The reference engine in the clothes of a later version.
class LaterEngine final : public index::Engine {
 public:
  explicit LaterEngine(std::shared_ptr<index::Engine> engine) : engine_(std::move(engine)) {}
  std::string_view name() const override { return engine_->name(); }
  uint32_t layout_version() const override { return 99; }
  uint64_t empty_bytes() const override { return engine_->empty_bytes(); }
  index::OptionMap recorded_options() const override { return engine_->recorded_options(); }
  Task<std::vector<fabric::FarAddr>> Create(Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override {
    return engine_->Create(op, pool, std::move(nodes));
  }
  std::unique_ptr<index::Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override {
    return engine_->Open(pool, std::move(roots));
  }
  std::string Describe(fabric::FarAddr, std::span<const fabric::FarAddr>) const override { return ""; }

 private:
  const std::shared_ptr<index::Engine> engine_;
};

Result<std::shared_ptr<index::Engine>> MakeLaterEngine(std::string_view name,
                                                       const index::OptionMap& options) {
  Result<std::shared_ptr<index::Engine>> engine = store::MakeEngine("reference", options);
  if (!engine.ok() || name != "reference") return engine;
  return std::shared_ptr<index::Engine>(std::make_shared<LaterEngine>(*engine));
}

Task<Done> MakeTable(Op& op, store::Registration& session, std::string name, std::string engine) {
  co_await session.tables().CreateOrOpen(op, std::move(name), std::move(engine), {});
  co_return Done{};
}

// Given a table of an unknown engine, and one of another layout version. When the pool is looked at. Expect a
// line for each of them, nothing to be called leaked, the tables to be shown, and not to be dropped.
TEST_F(DamagedPool, TablesThatThisBuildDoesNotKnow_AreSaidToBeSo) {
  MakePool();
  {
    Result<PoolSession> session = PoolSession::Open(url_, {}, MakeLaterEngine);
    ASSERT_TRUE(session.ok());
    Must(session->Run([](Op& op, store::Registration& s) { return MakeTable(op, s, "alien", "nosuch"); }));
    Must(session->Run([](Op& op, store::Registration& s) { return MakeTable(op, s, "later", "reference"); }));
  }  // without leaving: it would want to walk tables in its own way
  const std::string bytes = Read();
  const Result<PoolReport> report = CheckPool(url_);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_FALSE(report->ok());
  EXPECT_FALSE(report->complete);
  EXPECT_EQ(report->leaks() + report->damages(), 0u);
  EXPECT_GT(report->bytes().unknown, 0u);
  ASSERT_EQ(report->tables.size(), 4u);
  EXPECT_THAT(report->tables[2].why, testing::HasSubstr("there is no engine 'nosuch'"));
  EXPECT_THAT(report->tables[3].why, testing::HasSubstr("has layout version 99 of engine reference"));
  EXPECT_EQ(Run(TableCommand::Verb::kList, ""), kSuccess);
  EXPECT_EQ(Run(TableCommand::Verb::kShow, "alien"), kSuccess);
  EXPECT_EQ(Run(TableCommand::Verb::kShow, "later"), kSuccess);
  EXPECT_EQ(Run([&] { return Get({.url = url_, .table = "small", .key = "key7"}); }), kSuccess);
  EXPECT_EQ(Run([&] { return Get({.url = url_, .table = "alien", .key = "key7"}); }), kCouldNotRun);
  EXPECT_EQ(Run([&] { return PrintStatus({.url = url_}); }), kSuccess);
  EXPECT_EQ(Run(TableCommand::Verb::kDrop, "alien"), kCouldNotRun);
  EXPECT_EQ(Run(TableCommand::Verb::kDrop, "later"), kCouldNotRun);
  EXPECT_TRUE(Read() == bytes) << "the file has changed";
}

}  // namespace
}  // namespace farside::tools
