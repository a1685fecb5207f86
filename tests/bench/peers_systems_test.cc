// The driver of the comparison, and its clients, with servers that say what the tests want them to say.
// Neither redis nor memcached is needed.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/peers/batch.h"
#include "bench/peers/campaign.h"
#include "bench/peers/daemons.h"
#include "bench/peers/farside_system.h"
#include "bench/peers/line_up.h"
#include "bench/peers/memcached.h"
#include "bench/peers/options.h"
#include "bench/peers/process.h"
#include "bench/peers/redis.h"

namespace farside::peers {
namespace {

using testing::HasSubstr;

constexpr size_t kValueBytes = 20;

// A server on a Unix socket. It takes one connection, sends its answer byte by byte without looking at
// requests, and then hangs up: at once, or when the client does.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::string answer, bool hangs_up)
      : folder_(*TemporaryFolder::Make()), answer_(std::move(answer)), hangs_up_(hangs_up) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    endpoint_.path = folder_.path() + "/socket";
    endpoint_.path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    thread_ = std::jthread([this] { Serve(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);  // in case no client has come
    thread_.join();
    ::close(listener_);
  }

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  void Serve() {
    const int client = ::accept(listener_, nullptr, nullptr);
    if (client < 0) return;
    for (const char byte : answer_) {
      if (::send(client, &byte, 1, MSG_NOSIGNAL) != 1) break;
    }
    if (hangs_up_) ::shutdown(client, SHUT_WR);
    char ignored[4096];
    while (::recv(client, ignored, sizeof ignored, 0) > 0) {
    }
    ::close(client);
  }

  TemporaryFolder folder_;
  const std::string answer_;
  const bool hangs_up_;
  Endpoint endpoint_;
  int listener_ = -1;
  std::jthread thread_;
};

using Make = std::unique_ptr<System> (*)(std::string, Endpoint, pid_t);

// What comes of one batch of which the server answers this.
Status RunAgainst(Make make, Operation operation, const Batch& batch, size_t manner,
                  const std::string& answer, bool hangs_up = true) {
  const ScriptedServer server(answer, hangs_up);
  const std::unique_ptr<System> system = make("scripted", server.endpoint(), 0);
  Result<std::unique_ptr<Connection>> connection = system->Connect(batch.size(), batch.value_size());
  if (!connection.ok()) return connection.error();
  return (*connection)->Run(operation, batch, system->Manners(operation)[manner]);
}

void ExpectError(const Status& status, ErrorCode code, std::string_view what) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), code) << status.error().ToString();
  EXPECT_THAT(status.error().message(), HasSubstr(what));
}

Batch ThreeRecords() {
  Batch batch(3, kValueBytes);
  batch.Take(0, 3);
  return batch;
}

std::string RespBytes(std::string_view bytes) { return fmt::format("${}\r\n{}\r\n", bytes.size(), bytes); }
std::string MemcachedValue(std::string_view key, std::string_view value) {
  return fmt::format("VALUE {} 0 {}\r\n{}\r\n", key, value.size(), value);
}
std::string MetaValue(std::string_view value) { return fmt::format("VA {}\r\n{}\r\n", value.size(), value); }

TEST(PeersRedis, TakesRightAnswersInEveryManner) {
  // Given a server that sends what redis would, a byte at a time. When a batch is run in each manner. Expect
  // success.
  const Batch batch = ThreeRecords();
  std::string values;
  for (size_t i = 0; i < batch.size(); ++i) values += RespBytes(batch.value(i));
  for (const size_t wait : {0, 1}) {
    EXPECT_TRUE(RunAgainst(MakeRedis, Operation::kGet, batch, 0 + wait, values).ok());
    EXPECT_TRUE(RunAgainst(MakeRedis, Operation::kGet, batch, 2 + wait, "*3\r\n" + values).ok());
    EXPECT_TRUE(RunAgainst(MakeRedis, Operation::kSet, batch, 0 + wait, "+OK\r\n+OK\r\n+OK\r\n").ok());
    EXPECT_TRUE(RunAgainst(MakeRedis, Operation::kSet, batch, 2 + wait, "+OK\r\n").ok());
  }
}

TEST(PeersRedis, NoticesWrongAnswers) {
  // Given answers that are absent, of another key, of another kind, errors, garbage, or end too soon. When a
  // batch is run.
  // Expect an error that says so.
  const Batch batch = ThreeRecords();
  const auto get = [&](size_t manner, const std::string& answer) {
    return RunAgainst(MakeRedis, Operation::kGet, batch, manner, answer);
  };
  ExpectError(get(0, "$-1\r\n"), ErrorCode::kCorrupt, "absent");
  ExpectError(get(0, RespBytes(batch.value(1))), ErrorCode::kCorrupt, "not what was written");
  ExpectError(get(0, "+OK\r\n"), ErrorCode::kCorrupt, "another kind");
  ExpectError(get(0, "-ERR busy\r\n"), ErrorCode::kUnavailable, "ERR busy");
  ExpectError(get(0, "garbage\r\n"), ErrorCode::kCorrupt, "makes no sense");
  ExpectError(get(0, RespBytes(batch.value(0))), ErrorCode::kUnavailable, "closed the connection");
  ExpectError(get(2, "*2\r\n"), ErrorCode::kCorrupt, "another kind");
  ExpectError(RunAgainst(MakeRedis, Operation::kSet, batch, 0, "-OOM full\r\n"), ErrorCode::kUnavailable,
              "OOM full");
}

TEST(PeersMemcached, TakesRightAnswersInEveryManner) {
  // Given a server that sends what memcached would, a byte at a time. When a batch is run in each manner.
  // Expect success.
  const Batch batch = ThreeRecords();
  std::string classic;
  std::string many;
  std::string meta;
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::string value = MemcachedValue(batch.key(i), batch.value(i));
    classic += value + "END\r\n";
    many += value;
    meta += MetaValue(batch.value(i));
  }
  for (const size_t wait : {0, 1}) {
    EXPECT_TRUE(RunAgainst(MakeMemcached, Operation::kGet, batch, 0 + wait, classic).ok());
    EXPECT_TRUE(RunAgainst(MakeMemcached, Operation::kGet, batch, 2 + wait, many + "END\r\n").ok());
    EXPECT_TRUE(RunAgainst(MakeMemcached, Operation::kGet, batch, 4 + wait, meta).ok());
    EXPECT_TRUE(
        RunAgainst(MakeMemcached, Operation::kSet, batch, 0 + wait, "STORED\r\nSTORED\r\nSTORED\r\n").ok());
    EXPECT_TRUE(RunAgainst(MakeMemcached, Operation::kSet, batch, 2 + wait, "MN\r\n").ok());
  }
}

TEST(PeersMemcached, NoticesWrongAnswers) {
  // Given answers that are absent, left out, of another key, of another kind, errors, garbage, or end too
  // soon. When a batch is run. Expect an error that says so.
  const Batch batch = ThreeRecords();
  const auto get = [&](size_t manner, const std::string& answer) {
    return RunAgainst(MakeMemcached, Operation::kGet, batch, manner, answer);
  };
  ExpectError(get(0, "END\r\n"), ErrorCode::kCorrupt, "absent");
  ExpectError(get(4, "EN\r\n"), ErrorCode::kCorrupt, "absent");
  ExpectError(get(2, MemcachedValue(batch.key(1), batch.value(1))), ErrorCode::kCorrupt, "another key");
  ExpectError(get(2, MemcachedValue(batch.key(0), batch.value(1))), ErrorCode::kCorrupt,
              "not what was written");
  ExpectError(get(4, MetaValue(batch.value(1))), ErrorCode::kCorrupt, "not what was written");
  ExpectError(get(0, "STORED\r\n"), ErrorCode::kCorrupt, "another kind");
  ExpectError(get(0, "SERVER_ERROR busy\r\n"), ErrorCode::kUnavailable, "SERVER_ERROR busy");
  ExpectError(get(0, "garbage\r\n"), ErrorCode::kCorrupt, "makes no sense");
  ExpectError(get(2, MemcachedValue(batch.key(0), batch.value(0))), ErrorCode::kUnavailable,
              "closed the connection");
  ExpectError(RunAgainst(MakeMemcached, Operation::kSet, batch, 2, "NS\r\nMN\r\n"), ErrorCode::kUnavailable,
              "did not store");
}

TEST(PeersMemcached, TakesAnswersWhileTheServerIsSlowToRead) {
  // Given a server that reads nothing before all of its answers are taken, and more requests and answers than
  // sockets hold. When the batch is run. Expect that neither waits for the other for ever.
  Batch batch(4000, 1000);
  batch.Take(0, batch.size());
  std::string answers;
  for (size_t i = 0; i < batch.size(); ++i) answers += "STORED\r\n";
  EXPECT_TRUE(RunAgainst(MakeMemcached, Operation::kSet, batch, 0, answers, false).ok());
}

TEST(PeersBatch, KeysAreTextAndDifferFromEachOther) {
  // Given the first records and some far ones. When their keys are made. Expect eight characters that every
  // protocol takes, and no two alike.
  std::set<std::string> keys;
  constexpr uint64_t kNear = 20'000;
  for (uint64_t record = 0; record < 2 * kNear; ++record) {
    std::string key(kKeyBytes, '\0');
    FillKey(record < kNear ? record : kMostRecords - record, key.data());
    for (const char c : key) ASSERT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_');
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 2 * kNear);
}

TEST(PeersBatch, ValuesAreRightForTheirOwnKeysOnly) {
  // Given a batch that was drawn for writing. When its values are verified. Expect each right for its key,
  // and wrong for others or if a byte is missing.
  Random random(1);
  Batch batch(8, kValueBytes);
  batch.Draw(Operation::kSet, random, 1'000'000);
  for (size_t i = 0; i < batch.size(); ++i) {
    EXPECT_TRUE(batch.IsRight(i, batch.value(i)));
    EXPECT_FALSE(batch.IsRight(i, batch.value((i + 1) % batch.size())));
    EXPECT_FALSE(batch.IsRight(i, batch.value(i).substr(1)));
  }
  batch.Take(998, 1000);
  EXPECT_EQ(batch.size(), 2u);
  batch.Take(1000, 1000);
  EXPECT_EQ(batch.size(), 0u);
}

// A system in this process that counts what it is asked.
class MapSystem final : public System {
 public:
  struct Shared {
    std::mutex mutex;
    std::map<std::string, std::string, std::less<>> records;
    std::map<std::string, uint64_t> batches;  // by manner
    bool forgets = false;                     // answers as if the records were gone
  };

  explicit MapSystem(std::string name) : name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  bool is_farside() const override { return name_ == "ours"; }
  Result<std::string> Version() override { return name_ + " 1"; }
  std::optional<pid_t> daemon() const override { return std::nullopt; }
  std::vector<Manner> Manners(Operation) const override {
    return {{0, Wait::kBlock, "slow"}, {1, Wait::kBlock, "fast"}};
  }
  Result<std::unique_ptr<Connection>> Connect(size_t, size_t) override {
    return std::unique_ptr<Connection>(std::make_unique<MapConnection>(shared));
  }

  Shared shared;

 private:
  class MapConnection final : public Connection {
   public:
    explicit MapConnection(Shared& shared) : shared_(shared) {}
    Status Run(Operation operation, const Batch& batch, const Manner& manner) override {
      const std::lock_guard lock(shared_.mutex);
      ++shared_.batches[manner.name];
      for (size_t i = 0; i < batch.size(); ++i) {
        if (operation == Operation::kSet) {
          shared_.records.insert_or_assign(std::string(batch.key(i)), std::string(batch.value(i)));
          continue;
        }
        const auto found = shared_.records.find(batch.key(i));
        if (shared_.forgets || found == shared_.records.end())
          return WrongAnswer(batch.key(i), "that it is absent");
        if (!batch.IsRight(i, found->second)) return WrongAnswer(batch.key(i), "not what was written");
      }
      return OkStatus();
    }

   private:
    Shared& shared_;
  };

  const std::string name_;
};

CampaignOptions SmallCampaign() {
  CampaignOptions options;
  options.records = 500;
  options.value_size = kValueBytes;
  options.clients = {1, 2};
  options.depths = {1, 8};
  options.rounds = 3;
  options.seconds = 0.001;
  return options;
}

TEST(PeersCampaign, MeasuresEverySystemInEveryCell) {
  // Given two systems. When a campaign is run. Expect all cells, with all rounds of both, the ratios' base
  // being the one that is Farside, all records loaded, both manners tried, and progress told to the end.
  std::vector<std::unique_ptr<System>> systems;
  systems.push_back(std::make_unique<MapSystem>("theirs"));
  systems.push_back(std::make_unique<MapSystem>("ours"));
  Result<Interrupt> interrupt = Interrupt::Watch();
  ASSERT_TRUE(interrupt.ok());
  uint64_t told = 0;
  const auto progress = [&told](std::string_view, uint64_t done, uint64_t total) {
    EXPECT_EQ(done, told);
    EXPECT_LT(done, total);
    ++told;
  };
  const Result<Results> results = RunCampaign(systems, SmallCampaign(), *interrupt, progress);
  ASSERT_TRUE(results.ok()) << results.error().ToString();
  EXPECT_EQ(results->base, 1u);
  EXPECT_EQ(told, 2u + 8 * 4);
  ASSERT_EQ(results->cells.size(), 8u);
  for (const Cell& cell : results->cells) {
    ASSERT_EQ(cell.entries.size(), 2u);
    for (const Entry& entry : cell.entries) EXPECT_EQ(entry.rounds.size(), 3u);
  }
  for (const std::unique_ptr<System>& system : systems) {
    auto& shared = static_cast<MapSystem&>(*system).shared;
    EXPECT_EQ(shared.records.size(), 500u);
    EXPECT_GT(shared.batches["slow"], 0u);
    EXPECT_GT(shared.batches["fast"], 0u);
  }
}

TEST(PeersCampaign, EndsWithTheFirstWrongAnswer) {
  // Given a system that loses its records. When a campaign is run. Expect an error that names the system and
  // the key.
  std::vector<std::unique_ptr<System>> systems;
  auto system = std::make_unique<MapSystem>("theirs");
  system->shared.forgets = true;
  systems.push_back(std::move(system));
  Result<Interrupt> interrupt = Interrupt::Watch();
  ASSERT_TRUE(interrupt.ok());
  const Result<Results> results =
      RunCampaign(systems, SmallCampaign(), *interrupt, [](std::string_view, uint64_t, uint64_t) {});
  ASSERT_FALSE(results.ok());
  ExpectError(results.error(), ErrorCode::kCorrupt, "theirs: the answer for key ");
}

TEST(PeersFarside, HoldsTheRecordsThatItIsGiven) {
  // Given an embedded pool, with and without a location cache. When records are written and read, one and
  // many at a time.
  // Expect success; and an error for a record that was never written.
  for (const uint64_t cached : {0, 64}) {
    FarsideOptions options{.name = "farside", .url = "embedded:?size=64MiB", .table = "peers"};
    options.cached_locations = cached;
    Result<std::unique_ptr<System>> system = MakeFarside(options);
    ASSERT_TRUE(system.ok()) << system.error().ToString();
    Result<std::unique_ptr<Connection>> connection = (*system)->Connect(8, kValueBytes);
    ASSERT_TRUE(connection.ok());
    const Manner manner = (*system)->Manners(Operation::kGet).front();
    for (const size_t depth : {8, 1}) {
      Batch batch(depth, kValueBytes);
      for (int repeat = 0; repeat < 2; ++repeat) {
        batch.Take(0, 8);
        EXPECT_TRUE((*connection)->Run(Operation::kSet, batch, manner).ok());
        EXPECT_TRUE((*connection)->Run(Operation::kGet, batch, manner).ok());
      }
      batch.Take(100, 108);
      ExpectError((*connection)->Run(Operation::kGet, batch, manner), ErrorCode::kCorrupt, "absent");
    }
  }
}

TEST(PeersLineUp, ReadsTheNamesOfSystems) {
  // Given what the help lists. When it is read. Expect systems with names that tell them apart; anything else
  // is refused with what could be written.
  const auto name = [](std::string_view text) {
    const Result<SystemSpec> spec = ParseSpec(text);
    return spec.ok() ? spec->Name() : spec.error().message();
  };
  EXPECT_EQ(name("redis:tcp"), "redis, tcp");
  EXPECT_EQ(name("redis:unix"), "redis, unix socket");
  EXPECT_EQ(name("memcached:unix:4"), "memcached -t 4, unix socket");
  EXPECT_EQ(name("farside:embedded:"), "farside, embedded");
  EXPECT_EQ(name("farside+cache:embedded:?size=1GiB"), "farside, embedded, cache");
  EXPECT_EQ(name("farside:served:shm"), "farside, shm");
  EXPECT_EQ(name("farside+cache:served:tcp"), "farside, tcp, cache");
  EXPECT_EQ(name("farside:tcp://127.0.0.1:7700"), "farside, tcp");
  for (const char* text :
       {"", "redis", "redis:", "redis:udp", "redis:tcp:1", "memcached:tcp", "memcached:tcp:0",
        "memcached:tcp:x", "memcached:tcp:999", "farside:", "farside:served:udp", "valkey:tcp"}) {
    EXPECT_THAT(name(text), HasSubstr("is no system; write")) << text;
  }
}

TEST(PeersOptions, RefusesWhatCannotBeMeasured) {
  // Given options that make no sense. When they are read. Expect one message that names the option; defaults
  // are fine.
  const auto parse = [](std::vector<const char*> words) {
    words.insert(words.begin(), "farside_peers");
    return ParseOptions(static_cast<int>(words.size()), words.data());
  };
  const auto why = [&](std::vector<const char*> words) {
    const auto parsed = parse(std::move(words));
    const auto* wrong = std::get_if<UsageError>(&parsed);
    return wrong != nullptr ? wrong->why : std::string("fine");
  };
  EXPECT_EQ(why({}), "fine");
  EXPECT_EQ(why({"--clients", "1,8", "--depth", "1024", "--seconds", "0.1", "--out", "a", "--out", "b"}),
            "fine");
  EXPECT_THAT(why({"--records", "0"}), HasSubstr("--records: '0'"));
  EXPECT_THAT(why({"--records", "010x"}), HasSubstr("--records"));
  EXPECT_THAT(why({"--clients", "1,,2"}), HasSubstr("--clients: '1,,2' is not a list"));
  EXPECT_THAT(why({"--clients", ""}), HasSubstr("--clients"));
  EXPECT_THAT(why({"--depth", "1025"}), HasSubstr("--depth"));
  EXPECT_THAT(why({"--seconds", "nan"}), HasSubstr("--seconds"));
  EXPECT_THAT(why({"--seconds", "-1"}), HasSubstr("--seconds"));
  EXPECT_THAT(why({"--system", "redis"}), HasSubstr("--system: 'redis' is no system"));
  EXPECT_NE(why({"--nosuch"}), "fine");
  EXPECT_TRUE(std::holds_alternative<HelpText>(parse({"--help"})));
}

TEST(PeersDaemons, FindsTheAddressThatFarsideServesAt) {
  // Given what `farside serve` may print, in part and whole. When the address is looked for. Expect it once
  // its line is complete, without what stands around it.
  EXPECT_FALSE(ServedAddress("").has_value());
  EXPECT_FALSE(ServedAddress("starting\n").has_value());
  EXPECT_FALSE(ServedAddress("asked for tcp://127.0.0.1:0\n").has_value());
  EXPECT_FALSE(ServedAddress("ready at tcp://127.0.0.1:77").has_value());
  EXPECT_EQ(ServedAddress("x\nready at tcp://127.0.0.1:7700\n"), "tcp://127.0.0.1:7700");
  EXPECT_EQ(ServedAddress("tcp://127.0.0.1:7700, shm:name (1 GiB)\n"), "tcp://127.0.0.1:7700");
}

TEST(PeersDaemons, FarsideServesWithTheMemoryAndTheNamesItIsGiven) {
  // Given a program that says what it was asked for and then where it listens; and one that ends. When they
  // are started as `farside serve`. Expect both addresses, and an error with the last words.
  const TemporaryFolder folder = *TemporaryFolder::Make();
  const auto program = [&](std::string_view name, std::string_view script) {
    const std::string path = fmt::format("{}/{}", folder.path(), name);
    std::ofstream(path) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  };
  Result<Interrupt> interrupt = Interrupt::Watch();
  ASSERT_TRUE(interrupt.ok());
  const std::string good =
      program("good", "echo $*\necho serving at tcp://127.0.0.1:7701\nexec sleep 1000\n");
  Result<FarsideDaemon> daemon = StartFarside(folder.path(), good, uint64_t{100} << 20, *interrupt);
  ASSERT_TRUE(daemon.ok()) << daemon.error().ToString();
  EXPECT_EQ(daemon->tcp_url, "tcp://127.0.0.1:7701");
  EXPECT_THAT(daemon->shm_url, HasSubstr("shm:farside-peers-"));
  EXPECT_THAT(daemon->process.Output(),
              HasSubstr("serve --size 101MiB --listen tcp://127.0.0.1:0 --shm farside-peers-"));

  const std::string bad = program("bad", "echo no memory for you\nexit 3\n");
  const Result<FarsideDaemon> failed = StartFarside(folder.path(), bad, uint64_t{100} << 20, *interrupt);
  ASSERT_FALSE(failed.ok());
  ExpectError(failed.error(), ErrorCode::kUnavailable, "no memory for you");
}

TEST(PeersProcess, IsEndedWithItsObject) {
  // Given a process that would run for long. When its object is gone. Expect that it is gone too; and that
  // one which cannot be started, or has ended, says so.
  const TemporaryFolder folder = *TemporaryFolder::Make();
  pid_t id = 0;
  {
    Result<Process> process = Process::Start({"sleep", "1000"}, folder.path() + "/sleep");
    ASSERT_TRUE(process.ok());
    id = process->id();
    EXPECT_TRUE(process->Alive().ok());
    EXPECT_TRUE(CpuTime(id).has_value());
  }
  EXPECT_EQ(::kill(id, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_FALSE(CpuTime(id).has_value());

  Result<Process> missing = Process::Start({"no-such-program-anywhere"}, folder.path() + "/missing");
  ASSERT_TRUE(missing.ok());
  Status alive = missing->Alive();
  while (alive.ok()) alive = missing->Alive();
  ExpectError(alive, ErrorCode::kNotFound, "is it installed?");
  Result<Process> brief = Process::Start({"sh", "-c", "echo last words; exit 3"}, folder.path() + "/brief");
  ASSERT_TRUE(brief.ok());
  for (alive = OkStatus(); alive.ok();) alive = brief->Alive();
  ExpectError(alive, ErrorCode::kUnavailable, "last words");
}

}  // namespace
}  // namespace farside::peers
