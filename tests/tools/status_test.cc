// What status sees of a pool, and what it says.
#include "tools/status/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "fabric/op.h"
#include "store/engines.h"
#include "tools/common/pool_session.h"
#include "tools/json.h"
#include "tools/status/report.h"

namespace farside::tools {
namespace {

using namespace std::chrono_literals;
using fabric::Op;
using pool::ClientState;
using testing::HasSubstr;
using testing::SizeIs;

Task<Done> WriteNoise(Op& op, uint64_t offset) {
  std::array<std::byte, 8> noise{};
  noise.fill(std::byte{0xff});
  co_await op.InOrder(fabric::Write(fabric::FarAddr(fabric::NodeId{0}, offset), noise));
  co_return Done{};
}

class StatusTest : public testing::Test {
 protected:
  StatusTest() {
    pool::OpenOptions options;
    options.clock = &clock_;
    Result<std::unique_ptr<pool::OpenedPool>> opened = pool::OpenPool("embedded:?size=4MiB&nodes=2", options);
    EXPECT_TRUE(opened.ok());
    pool_ = std::move(*opened);
  }

  PoolSession Join() {
    Result<PoolSession> session = PoolSession::Join(*pool_, store::MakeEngine);
    EXPECT_TRUE(session.ok()) << session.error().ToString();
    return std::move(*session);
  }

  PoolStatus Look(const Pause& while_waiting = [](Nanos) {}) {
    Result<PoolStatus> status = LookAt(*pool_, 1s, [&](Nanos pause) {
      clock_.Advance(pause);
      while_waiting(pause);
    });
    EXPECT_TRUE(status.ok()) << status.error().ToString();
    return std::move(*status);
  }

  ManualClock clock_;
  std::unique_ptr<pool::OpenedPool> pool_;
};

TEST_F(StatusTest, FreshPool_AllOfItsChunksAreFree) {
  const PoolStatus status = Look();
  ASSERT_THAT(status.nodes, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    const pool::Geometry& geometry = pool_->geometries[i];
    EXPECT_EQ(status.nodes[i].bytes, 4u << 20);
    EXPECT_EQ(status.nodes[i].free, geometry.chunks() * geometry.chunk_bytes);
    EXPECT_EQ(status.nodes[i].used() + status.nodes[i].free, status.nodes[i].bytes);
  }
  EXPECT_THAT(status.clients, SizeIs(0));
  EXPECT_THAT(status.tables, SizeIs(0));
  EXPECT_FALSE(status.damaged());
}

TEST_F(StatusTest, ClientThatSaysNothing_IsSilentForAsLongAsItWasWatched) {
  const PoolSession session = Join();
  const PoolStatus status = Look();
  ASSERT_THAT(status.clients, SizeIs(2)) << "one on each node";
  for (const ClientStatus& client : status.clients) {
    EXPECT_EQ(client.word.state(), ClientState::kLive);
    EXPECT_FALSE(client.beats);
    EXPECT_GE(client.silent, 1s);
  }
}

TEST_F(StatusTest, ClientThatGivesASignOfLife_IsSeen) {
  // Given two clients. When one of them syncs after a while.
  // Expect that it beats, that the time since then is known, and that the other one is silent.
  PoolSession alive = Join();
  const PoolSession silent = Join();
  int pauses = 0;
  const PoolStatus status = Look([&](Nanos) {
    if (++pauses != 5) return;
    const Status synced =
        alive.Run([](Op& op, store::Registration& session) { return session.pool().Sync(op, true); });
    EXPECT_TRUE(synced.ok());
  });
  ASSERT_THAT(status.clients, SizeIs(4));
  for (const ClientStatus& client : status.clients) {
    const bool is_first = client.slot == status.clients[0].slot;
    EXPECT_EQ(client.beats, is_first) << "slot " << client.slot;
    EXPECT_EQ(client.silent < 1s, is_first);
  }
}

TEST_F(StatusTest, WhenAllClientsHaveBeenSeen_ItWaitsNoLonger) {
  PoolSession session = Join();
  int pauses = 0;
  const PoolStatus status = Look([&](Nanos) {
    ++pauses;
    EXPECT_TRUE(
        session.Run([](Op& op, store::Registration& joined) { return joined.pool().Sync(op, true); }).ok());
  });
  EXPECT_EQ(pauses, 1);
  EXPECT_THAT(status.clients, SizeIs(2));
}

TEST_F(StatusTest, DamagedWords_AreNoticed) {
  // Given a pool with bytes that no client writes. When it is looked at.
  // Expect that it is called damaged.
  {
    PoolSession session = Join();
    const uint64_t offset = pool_->geometries[0].chunk_word(0);
    const Status written = session.Run([&](Op& op, store::Registration&) { return WriteNoise(op, offset); });
    ASSERT_TRUE(written.ok());
  }
  const PoolStatus status = Look();
  EXPECT_EQ(status.nodes[0].damaged_chunks, 1u);
  EXPECT_EQ(status.nodes[1].damaged_chunks, 0u);
  EXPECT_TRUE(status.damaged());
  EXPECT_THAT(StatusText({}, status), HasSubstr("DAMAGED: run 'farside fsck'"));
}

PoolStatus Example() {
  PoolStatus status;
  status.nodes.push_back(
      {.bytes = 64 << 20, .free = 60 << 20, .chunk_bytes = 1 << 20, .client_slots = 64, .table_slots = 64});
  status.nodes[0].control.epoch = 1234;
  status.clients.push_back({.node = 0,
                            .slot = 3,
                            .word = pool::ClientWord(ClientState::kLive, 7, fabric::ClientId{9}),
                            .pulse = {.epoch = 1233, .heartbeat = 5, .settled = 2},
                            .silent = 300ms,
                            .beats = true});
  status.clients.push_back(
      {.node = 0, .slot = 4, .word = pool::ClientWord(ClientState::kFenced, 1, fabric::ClientId{0})});
  TableStatus users;
  users.info.name = "users";
  users.info.engine = "shard";
  users.stats = TableStats{.records = 1000, .slots = 2000, .index_bytes = 4096, .block_bytes = 64000};
  TableStatus strange;
  strange.info.name = "strange";
  strange.info.engine = "other";
  strange.why = "there is no engine 'other'";
  status.tables = {users, strange};
  return status;
}

TEST(StatusText, OneScreen) {
  EXPECT_EQ(StatusText({.url = "file:a.pool", .records = true}, Example()),
            "pool  file:a.pool\n"
            "\n"
            "NODE   SIZE       USED        FREE   FULL  EPOCH  DEATHS  CLIENTS   TABLES\n"
            "   0  64MiB  4,194,304  62,914,560  6.2 %  1,234       0  2 of 64  2 of 64\n"
            "\n"
            "NODE  SLOT  STATE   GENERATION  FABRIC ID  EPOCH  SIGN OF LIFE\n"
            "   0     3  live             7          9  1,233  0.3 s ago\n"
            "   0     4  fenced           1          0      0  none: it has gone, and the next client of "
            "the pool clears up\n"
            "\n"
            "TABLE    ENGINE  RECORDS  INDEX BYTES  BLOCK BYTES  OPTIONS\n"
            "users    shard     1,000        4,096       64,000  -\n"
            "strange  other         ?            ?            ?  -\n"
            "table strange was not counted: there is no engine 'other'\n");
}

TEST(StatusText, NotCounted_OnlyWhatTheCatalogKnows) {
  EXPECT_THAT(StatusText({}, Example()), HasSubstr("TABLE    ENGINE  OPTIONS\n"
                                                   "users    shard   -\n"
                                                   "strange  other   -\n"
                                                   "records were not counted; --records walks the tables"));
}

TEST(StatusText, ManyClientsAndTables_AreCutShort) {
  PoolStatus status = Example();
  status.clients.resize(64, status.clients[0]);
  status.tables.resize(64, status.tables[0]);
  EXPECT_THAT(StatusText({}, status), HasSubstr("... and 44 more; --json has all\n\nTABLE"));
}

TEST(StatusText, HostileUrls_DoNotReachTheTerminal) {
  EXPECT_THAT(StatusText({.url = "file:a\033[2J"}, Example()), testing::Not(HasSubstr("\033")));
}

TEST(StatusJson, HasWhatTheTextHas) {
  const std::string json = ToJson(StatusCommand{.url = "file:a.pool"}, Example());
  EXPECT_THAT(json, HasSubstr(R"("used":4194304,"free":62914560)"));
  EXPECT_THAT(
      json,
      HasSubstr(R"("slot":3,"state":"live","generation":7,"fabric_client":9,"offline":false,"epoch":1233)"));
  EXPECT_THAT(json, HasSubstr(R"("beats":true,"silent_seconds":0.3)"));
  EXPECT_THAT(json, HasSubstr(R"("records":1000,"slots":2000,"index_bytes":4096,"block_bytes":64000)"));
  EXPECT_THAT(json, HasSubstr(R"("records":null)"));
  EXPECT_THAT(json, HasSubstr(R"("counted":false)"));
  EXPECT_THAT(ToJson(StatusCommand{.url = "file:a.pool", .records = true}, Example()),
              HasSubstr(R"("counted":true)"));
  EXPECT_EQ(json.find('\n'), json.size() - 1);
}

}  // namespace
}  // namespace farside::tools
