#include "pool/region/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "pool/members/membership.h"
#include "pool/region/node_identity.h"
#include "pool/region/url.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kBytes = 64 * 1024;

// One trip of one verb, at once.
template <class TypedVerb>
Task<Done> One(fabric::Op& op, TypedVerb verb) {
  co_await op.InOrder(verb);
  co_return Done{};
}

Status Store(fabric::Client& client, uint64_t offset, uint64_t word) {
  fabric::Op op(client, fabric::OpKind::kUpdate);
  return fabric::Run(client, One(op, fabric::WriteObject(FarAddr(NodeId{0}, offset), word)));
}

uint64_t Load(fabric::Client& client, uint64_t offset) {
  fabric::Op op(client, fabric::OpKind::kSearch);
  uint64_t word = 0;
  EXPECT_TRUE(fabric::Run(client, One(op, fabric::Read(FarAddr(NodeId{0}, offset),
                                                       std::as_writable_bytes(std::span(&word, 1)))))
                  .ok());
  return word;
}

// ---- embedded --------------------------------------------------------------------------------------------

TEST(OpenPoolEmbedded, EveryNodeIsAPoolOfItsOwn) {
  const auto pool = std::move(*OpenPool("embedded:?size=16MiB&nodes=3", {}));
  EXPECT_TRUE(pool->made);
  EXPECT_EQ(pool->fabric->name(), "embedded");
  EXPECT_NE(pool->calls, nullptr);
  EXPECT_THAT(pool->fabric->region_bytes(), ::testing::ElementsAre(16 * kMiB, 16 * kMiB, 16 * kMiB));
  ASSERT_EQ(pool->geometries.size(), 3u);
  ASSERT_EQ(pool->region_ids.size(), 3u);
  EXPECT_NE(pool->region_ids[0], pool->region_ids[1]);
  EXPECT_NE(pool->region_ids[1], pool->region_ids[2]);
  EXPECT_NE(pool->region_ids[0], pool->region_ids[2]);

  auto client = std::move(*pool->fabric->Connect());
  for (uint16_t node = 0; node < 3; ++node) {
    fabric::Op op(*client, fabric::OpKind::kMaintenance);
    const Result<Superblock> read = fabric::Run(*client, ReadSuperblock(op, NodeId{node}));
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    EXPECT_EQ(read->region_id, pool->region_ids[node]);
    EXPECT_EQ(read->chunk_bytes, pool->geometries[node].chunk_bytes);
  }
}

TEST(OpenPoolEmbedded, IsNewEveryTime) {
  const auto first = std::move(*OpenPool("embedded:", {}));
  const auto second = std::move(*OpenPool("embedded:", {}));
  EXPECT_NE(first->region_ids, second->region_ids);
  EXPECT_EQ(first->geometries[0].region_bytes, 256 * kMiB);
}

TEST(OpenPoolEmbedded, OptionsDecideItsShape) {
  Random random(7);
  Random same(7);
  const ManualClock clock(Nanos{42});
  const auto pool = std::move(*OpenPool("embedded:?size=5000000",
                                        {.format = {.client_slots = 3, .table_slots = 5, .chunk_bytes = 8192},
                                         .clock = &clock,
                                         .random = &random}));
  EXPECT_EQ(pool->geometries[0].region_bytes, 4'997'120u);  // whole pages
  EXPECT_EQ(pool->geometries[0].client_slots, 3u);
  EXPECT_EQ(pool->geometries[0].table_slots, 5u);
  EXPECT_EQ(pool->geometries[0].chunk_bytes, 8192u);
  EXPECT_EQ(pool->region_ids[0][0], same.Next());
  EXPECT_EQ(pool->region_ids[0][1], same.Next());
  EXPECT_EQ((*pool->fabric->Connect())->Now(), Nanos{42});
}

TEST(OpenPoolEmbedded, WhatCannotBe_SaysWhy) {
  const auto error = [](std::string_view url, const OpenOptions& options = {}) {
    const auto pool = OpenPool(url, options);
    return pool.ok() ? "it was opened" : pool.error().ToString();
  };
  EXPECT_EQ(error("embedded:?size=4KiB"),
            "kInvalidArgument: 4KiB is too small for a pool of 64 client slots and 64 table slots; it takes "
            "at least "
            "48KiB");
  EXPECT_EQ(error("embedded:?size=0"),
            "kInvalidArgument: 0 is too small for a pool of 64 client slots and 64 table slots; it takes at "
            "least 48KiB");
  EXPECT_EQ(error("embedded:?size=8Gib!"),
            "kInvalidArgument: \"8Gib!\" is not a size; write a whole number of bytes, KiB, MiB, GiB or TiB, "
            "such as "
            "4096 or 8GiB");
  EXPECT_THAT(error("embedded:?size=16777215TiB"),
              ::testing::StartsWith("kOutOfMemory: cannot map 16777215TiB"));
  EXPECT_EQ(error("embedded:", {.format = {.client_slots = 5000}}),
            "kInvalidArgument: a pool has 1 to 4096 client slots, not 5000");
  EXPECT_EQ(
      error("embedded:", {.read_only = true}),
      "kInvalidArgument: an embedded pool is always a new one; to look at a pool, name its file or its node");
  EXPECT_EQ(error("verbs://localhost:7700"),
            "kUnsupported: verbs: is not in this version; write embedded:?size=1GiB, file:PATH?size=1GiB, "
            "pmem:PATH?size=1GiB, shm:NAME or tcp://HOST:PORT");
}

// ---- files -----------------------------------------------------------------------------------------------

class OpenPoolFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "farside-open-XXXXXX").native();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = (folder_ / "pool").native();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Url(std::string_view parameters = "") const {
    return "file:" + path_ + std::string(parameters);
  }
  std::string Pmem(std::string_view parameters = "") const {
    return "pmem:" + path_ + std::string(parameters);
  }

  void MakePool() const { ASSERT_TRUE(OpenPool(Url("?size=64KiB"), {}).ok()); }

  std::string Contents() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void SetContents(const std::string& contents) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << contents;
  }

  // The error of opening what is there now: the same with a size and without, for looking and for using; and
  // nothing in the folder changes.
  std::string Refused() const {
    const uint64_t before = HashOfFolder();
    const std::string error = ErrorOf(Url(), {});
    EXPECT_EQ(ErrorOf(Url(), {.read_only = true}), error);
    EXPECT_EQ(ErrorOf(Url("?size=64KiB"), {}), error);
    EXPECT_EQ(ErrorOf(Url("?size=64KiB"), {.read_only = true}), error);
    EXPECT_EQ(HashOfFolder(), before) << "the file was changed";
    EXPECT_EQ(error.find('\n'), std::string::npos);
    return error;
  }
  static std::string ErrorOf(const std::string& url, const OpenOptions& options) {
    const auto pool = OpenPool(url, options);
    return pool.ok() ? "it was opened" : pool.error().ToString();
  }

  uint64_t HashOfFolder() const {
    uint64_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      uint64_t contents = 0;
      if (entry.is_regular_file()) {
        std::ifstream in(entry.path(), std::ios::binary);
        contents = Hash64(std::string(std::istreambuf_iterator<char>(in), {}));
      }
      sum += Hash64(entry.path().native(), contents);
    }
    return sum;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(OpenPoolFile, IsMadeOnce_AndKeepsWhatIsStored) {
  // Given a file that was made, and stored to.
  // When it is opened again, with the same size and with none.
  // Expect the same pool, and what was stored.
  RegionId id;
  uint64_t chunk = 0;
  {
    const auto pool = std::move(*OpenPool(Url("?size=64KiB"), {}));
    EXPECT_TRUE(pool->made);
    EXPECT_EQ(pool->geometries[0].region_bytes, kBytes);
    id = pool->region_ids[0];
    chunk = pool->geometries[0].chunk(1);
    auto client = std::move(*pool->fabric->Connect());
    ASSERT_TRUE(Store(*client, chunk, 0xfeed).ok());
  }
  for (const char* parameters : {"", "?size=64KiB", "?size=65537"}) {
    const auto opened = OpenPool(Url(parameters), {});
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
    EXPECT_FALSE((*opened)->made);
    EXPECT_EQ((*opened)->region_ids[0], id);
    EXPECT_EQ((*opened)->geometries[0].chunk(1), chunk);
    auto client = std::move(*(*opened)->fabric->Connect());
    EXPECT_EQ(Load(*client, chunk), 0xfeedu);
  }
}

TEST_F(OpenPoolFile, OpenedForLooking_StaysAsItIs) {
  // Given a pool in a file that may not even be written to.
  // When it is opened read-only and stored to all over.
  // Expect the stores to be seen here, and the file to be what it was.
  MakePool();
  ASSERT_EQ(::chmod(path_.c_str(), 0400), 0);
  const uint64_t before = HashOfFolder();
  {
    const auto pool = std::move(*OpenPool(Url(), {.read_only = true}));
    EXPECT_FALSE(pool->made);
    auto client = std::move(*pool->fabric->Connect());
    for (uint64_t offset = 0; offset < kBytes; offset += 8)
      ASSERT_TRUE(Store(*client, offset, ~uint64_t{0}).ok());
    EXPECT_EQ(Load(*client, 0), ~uint64_t{0});
    const auto second = OpenPool(Url(), {.read_only = true});
    EXPECT_TRUE(second.ok()) << "lookers do not disturb each other";
    EXPECT_EQ(HashOfFolder(), before);
  }
  EXPECT_EQ(HashOfFolder(), before);
}

TEST_F(OpenPoolFile, ThatDoesNotExist_IsMadeOnlyWithASize) {
  EXPECT_EQ(ErrorOf(Url(), {}),
            "kNotFound: " + path_ + " does not exist; to make a pool there, add a size, as in ?size=1GiB");
  EXPECT_EQ(ErrorOf(Url(), {.read_only = true}), "kNotFound: " + path_ + " does not exist");
  EXPECT_EQ(ErrorOf(Url("?size=64KiB"), {.read_only = true}), "kNotFound: " + path_ + " does not exist");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(OpenPoolFile, OfASizeThatIsTooSmall_IsNotMade) {
  EXPECT_EQ(ErrorOf(Url("?size=47KiB"), {}),
            "kInvalidArgument: 47KiB is too small for a pool of 64 client slots and 64 table slots; it takes "
            "at least "
            "48KiB");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(ErrorOf(Url("?size=48KiB"), {}), "it was opened");
}

TEST_F(OpenPoolFile, WithMoreBytesThanTheDisk_IsNotMade) {
  EXPECT_THAT(ErrorOf(Url("?size=1048576TiB"), {}),
              ::testing::StartsWith("kOutOfMemory: cannot create " + path_ +
                                    ": it needs 1048576TiB, and its file system has "));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(OpenPoolFile, InAFolderThatDoesNotExist_IsNotMade) {
  EXPECT_EQ(ErrorOf("file:" + path_ + "/a?size=64KiB", {}),
            "kNotFound: cannot create " + path_ + "/a: No such file or directory");
}

TEST_F(OpenPoolFile, OfAnotherSize_IsRefused) {
  MakePool();
  const uint64_t before = HashOfFolder();
  for (const char* parameters : {"?size=128KiB", "?size=60KiB", "?size=0", "?size=1048576TiB"}) {
    EXPECT_THAT(ErrorOf(Url(parameters), {}),
                ::testing::StartsWith("kInvalidArgument: " + path_ + " has 64KiB, but size="));
    EXPECT_EQ(ErrorOf(Url(parameters), {.read_only = true}), ErrorOf(Url(parameters), {}));
  }
  EXPECT_EQ(
      ErrorOf(Url("?size=128KiB"), {}),
      "kInvalidArgument: " + path_ +
          " has 64KiB, but size=128KiB is asked for; the size of a pool does not change, so leave it out");
  EXPECT_EQ(HashOfFolder(), before);
}

TEST_F(OpenPoolFile, ThatIsNoPool_IsRefused) {
  for (const std::string& contents : {std::string("x"), std::string("FARSIDE\0", 8), std::string(63, '\0'),
                                      std::string(kBytes, '\0'), std::string(kBytes + 1, 'x')}) {
    SetContents(contents);
    EXPECT_EQ(Refused(), "kInvalidArgument: " + path_ + ": not a Farside pool");
  }
}

TEST_F(OpenPoolFile, ThatIsEmpty_IsRefused) {
  SetContents("");
  EXPECT_EQ(Refused(), "kInvalidArgument: " + path_ + " is an empty file");
}

TEST_F(OpenPoolFile, ThatIsADirectory_IsRefused) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(Refused(), "kInvalidArgument: cannot open " + path_ + ": Is a directory");
}

TEST_F(OpenPoolFile, WithoutPermission_IsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may open everything";
  MakePool();
  const uint64_t before = HashOfFolder();
  ASSERT_EQ(::chmod(path_.c_str(), 0), 0);
  const std::string expected = "kPermissionDenied: cannot open " + path_ + ": Permission denied";
  EXPECT_EQ(ErrorOf(Url(), {}), expected);
  EXPECT_EQ(ErrorOf(Url("?size=64KiB"), {}), expected);
  EXPECT_EQ(ErrorOf(Url(), {.read_only = true}), expected);
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_EQ(HashOfFolder(), before);
}

TEST_F(OpenPoolFile, OfAnotherLayoutVersion_IsRefused) {
  MakePool();
  std::string contents = Contents();
  contents[offsetof(Superblock, layout_version)] = 1;
  SetContents(contents);
  EXPECT_EQ(Refused(),
            "kVersionMismatch: " + path_ +
                ": the pool has layout version 1, this build reads version 2; export it with a build of its "
                "version and import it with this one");
}

TEST_F(OpenPoolFile, WithAnyByteOfItsFirstLineChanged_IsRefused) {
  MakePool();
  const std::string good = Contents();
  for (size_t byte = 0; byte < kLine; ++byte) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[byte] = static_cast<char>(bad[byte] ^ flip);
      SetContents(bad);
      const std::string error = Refused();
      EXPECT_THAT(error, ::testing::HasSubstr(path_ + ": ")) << "byte " << byte;
    }
  }
  SetContents(good);
  EXPECT_TRUE(OpenPool(Url(), {}).ok());
}

TEST_F(OpenPoolFile, ThatWasCutShort_IsRefused) {
  MakePool();
  for (const uint64_t left : {kBytes - 1, kBytes - 4096, uint64_t{4097}, uint64_t{4096}, uint64_t{64}}) {
    std::filesystem::resize_file(path_, left);
    EXPECT_EQ(Refused(), "kCorrupt: " + path_ +
                             ": truncated: the superblock says 65536 bytes, but there are " +
                             std::to_string(left));
  }
}

TEST_F(OpenPoolFile, ThatHasGrown_IsRefused) {
  MakePool();
  std::filesystem::resize_file(path_, kBytes + 1);
  EXPECT_EQ(Refused(),
            "kCorrupt: " + path_ +
                ": the superblock says 65536 bytes, but there are 65537; cut off what was appended");
}

TEST_F(OpenPoolFile, ThatIsOpenAlready_IsRefused) {
  // Given a pool that was just made, and one that was opened.
  // When it is opened again meanwhile, to use it or to look at it.
  // Expect a refusal, and the first to be undisturbed.
  const std::string expected =
      "kUnavailable: " + path_ + " is in use by another process; wait until it has ended";
  for (int i = 0; i < 2; ++i) {
    const auto first = OpenPool(Url("?size=64KiB"), {});
    ASSERT_TRUE(first.ok());
    EXPECT_EQ((*first)->made, i == 0);
    EXPECT_EQ(Refused(), expected);
  }
  const auto looking = OpenPool(Url(), {.read_only = true});
  ASSERT_TRUE(looking.ok());
  EXPECT_EQ(ErrorOf(Url(), {}), expected);
}

TEST_F(OpenPoolFile, WhoseMakerDies_IsThereOrNot) {
  // Given a process that makes pools until it is killed, at a moment that the test does not choose.
  // When the name is looked at afterwards.
  // Expect no pool, or a complete one.
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);  // should the test itself be killed
      while (true) {
        std::filesystem::remove(path_);
        static_cast<void>(OpenPool(Url("?size=64KiB"), {}));
      }
    }
    ::usleep(static_cast<useconds_t>(1000 + 700 * i));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const std::string outcome = ErrorOf(Url(), {});
    EXPECT_THAT(outcome, ::testing::AnyOf("it was opened", ::testing::HasSubstr("does not exist")))
        << outcome;
  }
}

// ---- durable pools -------------------------------------------------------------------------------------

TEST_F(OpenPoolFile, ThatIsDurable_SaysSo_AndIsOpenedAsSuch) {
  {
    const auto made = OpenPool(Pmem("?size=64KiB"), {});
    ASSERT_TRUE(made.ok()) << made.error().ToString();
    EXPECT_TRUE((*made)->geometries[0].durable);
  }
  const auto opened = OpenPool(Pmem(), {});
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_TRUE((*opened)->geometries[0].durable);
  EXPECT_FALSE((*opened)->made);
}

TEST_F(OpenPoolFile, OfAnotherDurability_IsRefused_AndLeftAsItIs) {
  ASSERT_TRUE(OpenPool(Pmem("?size=64KiB"), {}).ok());
  EXPECT_EQ(Refused(), "kInvalidArgument: " + path_ + " is a durable pool; open it as pmem:" + path_);
  const auto serve = [](const std::string& url) {
    const Result<PoolRegion> served = OpenOrMakeFile(*ParseUrl(url), {.served = true});
    return served.ok() ? "it was opened" : served.error().ToString();
  };
  EXPECT_EQ(serve(Url()), "kInvalidArgument: " + path_ + " is a durable pool; serve it with --pmem " + path_);
  std::filesystem::remove(path_);
  MakePool();
  const uint64_t before = HashOfFolder();
  EXPECT_EQ(ErrorOf(Pmem(), {}), "kInvalidArgument: " + path_ +
                                     " is not a durable pool, and does not become one; open it as file:" +
                                     path_ + ", or import its tables into a new one");
  EXPECT_EQ(ErrorOf(Pmem(), {.read_only = true}), ErrorOf(Pmem("?size=64KiB"), {}));
  EXPECT_EQ(serve(Pmem()), "kInvalidArgument: " + path_ +
                               " is not a durable pool, and does not become one; serve it with --file " +
                               path_ + ", or import its tables into a new one");
  EXPECT_EQ(HashOfFolder(), before);
}

TEST_F(OpenPoolFile, ThatIsDurable_HasASlotForWhatAPowerCutLeft) {
  EXPECT_EQ(ErrorOf(Pmem("?size=64KiB"), {.format = {.client_slots = 1}}),
            "kInvalidArgument: a durable pool has at least 2 client slots: after a power cut, one of them "
            "stands for what clients had in use");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// ---- clients that were registered ----------------------------------------------------------------------

class OpenPoolMembers : public OpenPoolFile {
 protected:
  struct Member {
    explicit Member(OpenedPool& pool, const LeaseOptions& lease = {})
        : client(std::move(*pool.fabric->Connect())),
          membership(*client, NodeId{0}, pool.geometries[0], lease) {}
    Status Join() {
      fabric::Op op(*client, fabric::OpKind::kMaintenance);
      return fabric::Run(*client, membership.Join(op));
    }
    std::unique_ptr<fabric::Client> client;
    Membership membership;
  };

  // The bytes of the file, for a test that changes what no client would.
  fabric::memory::Region OpenBytes() {
    Result<fabric::memory::Region> file =
        fabric::memory::Region::OpenFile(ParseUrl(Url())->path, fabric::memory::Region::Access::kShared);
    EXPECT_TRUE(file.ok()) << file.error().ToString();
    return std::move(*file);
  }
};

TEST_F(OpenPoolMembers, OfAProcessThatHasGone_AreFenced_AndNoOtherClient) {
  // Given two clients, of which one left its pool in good order and one did not.
  // When the file is opened again, and a new client joins, which has the number of the lost one.
  // Expect the lost one to be fenced, and the new one not to be mistaken for it.
  Owner lost;
  {
    const auto pool = std::move(*OpenPool(Url("?size=64KiB"), {}));
    Member dies(*pool);
    Member leaves(*pool);
    ASSERT_TRUE(dies.Join().ok());
    ASSERT_TRUE(leaves.Join().ok());
    lost = dies.membership.self();
    fabric::Op op(*leaves.client, fabric::OpKind::kMaintenance);
    ASSERT_TRUE(fabric::Run(*leaves.client, leaves.membership.Leave(op)).ok());
  }
  const ManualClock clock;
  const auto pool = std::move(*OpenPool(Url(), {.clock = &clock}));
  const Geometry& geometry = pool->geometries[0];
  Member fresh(*pool, {.lease = Nanos{0}});
  ASSERT_EQ(fresh.client->id(), fabric::ClientId{1});

  const ClientWord word(Load(*fresh.client, geometry.client_slot(lost.slot())));
  EXPECT_EQ(word.state(), ClientState::kFenced);
  EXPECT_EQ(word.generation(), lost.generation());
  EXPECT_EQ(word.fabric_client(), fabric::ClientId::kNone);
  EXPECT_EQ(ClientWord(Load(*fresh.client, geometry.client_slot(1))).state(), ClientState::kFree);
  EXPECT_EQ(Load(*fresh.client, kDeathsOffset), 1u);

  ASSERT_TRUE(fresh.Join().ok());
  EXPECT_NE(fresh.membership.self().slot(), lost.slot());
  for (int i = 0; i < 2; ++i) {
    fabric::Op op(*fresh.client, fabric::OpKind::kMaintenance);
    const Result<Standing> standing = fabric::Run(*fresh.client, fresh.membership.StandingOf(op, lost));
    ASSERT_TRUE(standing.ok()) << standing.error().ToString();
    EXPECT_EQ(*standing, Standing::kGone);
    const Result<RegistryView> view = fabric::Run(*fresh.client, fresh.membership.LookAround(op));
    ASSERT_TRUE(view.ok()) << view.error().ToString();
    EXPECT_THAT(view->fenced, ::testing::ElementsAre(lost));
  }
}

TEST_F(OpenPoolMembers, OfAPartOfAPool_AreLeftForClientsThatCanCutThemOffEverywhere) {
  // Given a file with a client that did not leave, which is a pool by itself, or one of two nodes.
  for (const size_t nodes : {1, 2}) {
    std::filesystem::remove(path_);
    RegionId id{};
    {
      const auto pool = std::move(*OpenPool(Url("?size=64KiB"), {}));
      id = pool->region_ids[0];
      Member dies(*pool);
      ASSERT_TRUE(dies.Join().ok());
    }
    StoreU64(OpenBytes().bytes().data() + kIdentityOffset, NodeIdentity(TagOf(id), nodes, 0).word());
    // When a node serves it again.
    const Result<PoolRegion> served = OpenOrMakeFile(*ParseUrl(Url()), {.served = true});
    ASSERT_TRUE(served.ok()) << served.error().ToString();
    // Expect that it is said to be fenced if this is all there is, and left alone if it may live on at
    // another node.
    const std::byte* const bytes = served->region.bytes().data();
    const ClientWord word(LoadU64(bytes + served->geometry.client_slot(0)));
    EXPECT_EQ(word.state(), nodes == 1 ? ClientState::kFenced : ClientState::kLive);
    EXPECT_EQ(word.fabric_client() == fabric::ClientId::kNone, nodes == 1);
    EXPECT_EQ(LoadU64(bytes + kDeathsOffset), nodes == 1 ? 1u : 0u);
  }
}

TEST_F(OpenPoolMembers, InAStateThatNoClientWrites_AreFencedToo) {
  // Given a file with a slot that was damaged.
  {
    const auto pool = std::move(*OpenPool(Url("?size=64KiB"), {}));
    Member dies(*pool);
    ASSERT_TRUE(dies.Join().ok());
  }
  {
    const fabric::memory::Region file = OpenBytes();
    std::byte* const slot = file.bytes().data() + kPage;
    StoreU64(slot, ClientWord::State::Set(LoadU64(slot), 9));
  }
  // When it is opened again. Expect that its client counts as dead, and is no stranger's by its number.
  const auto pool = std::move(*OpenPool(Url(), {}));
  auto client = std::move(*pool->fabric->Connect());
  const ClientWord word(Load(*client, pool->geometries[0].client_slot(0)));
  EXPECT_EQ(word.state(), ClientState::kFenced);
  EXPECT_EQ(word.fabric_client(), fabric::ClientId::kNone);
  EXPECT_EQ(Load(*client, kDeathsOffset), 1u);
}

TEST_F(OpenPoolMembers, OfADurablePool_AreForgotten_AndWhatTheyHadBelongsToOneThatIsFenced) {
  // Given a durable pool, alone or one of two nodes, with a client that did not leave and has a chunk.
  for (const size_t nodes : {1, 2}) {
    std::filesystem::remove(path_);
    uint64_t chunk_word = 0;
    {
      const auto pool = std::move(*OpenPool(Pmem("?size=64KiB"), {}));
      Member dies(*pool);
      ASSERT_TRUE(dies.Join().ok());
      chunk_word = pool->geometries[0].chunk_word(1);
      const ChunkWord mine(ChunkState::kBlocks, 0, dies.membership.self());
      ASSERT_TRUE(Store(*dies.client, chunk_word, mine.word()).ok());
    }
    StoreU64(OpenBytes().bytes().data() + kIdentityOffset, NodeIdentity(1, nodes, 0).word());
    // When it is opened again. Expect that the client is refused by the node, so that nothing needs its slot.
    const Result<PoolRegion> served = OpenOrMakeFile(*ParseUrl(Pmem()), {.served = true});
    ASSERT_TRUE(served.ok()) << served.error().ToString();
    const std::byte* const bytes = served->region.bytes().data();
    const ClientWord word(LoadU64(bytes + served->geometry.client_slot(0)));
    EXPECT_EQ(word.state(), ClientState::kFenced);
    EXPECT_EQ(word.fabric_client(), fabric::ClientId::kNone);
    EXPECT_EQ(ChunkWord(LoadU64(bytes + chunk_word)).owner(), Owner(0, word.generation()));
  }
}

TEST_F(OpenPoolMembers, WhenLookingOnly_AreFencedInTheCopyAlone) {
  {
    const auto pool = std::move(*OpenPool(Url("?size=64KiB"), {}));
    Member dies(*pool);
    ASSERT_TRUE(dies.Join().ok());
  }
  const uint64_t before = HashOfFolder();
  {
    const auto pool = std::move(*OpenPool(Url(), {.read_only = true}));
    auto client = std::move(*pool->fabric->Connect());
    EXPECT_EQ(ClientWord(Load(*client, pool->geometries[0].client_slot(0))).state(), ClientState::kFenced);
  }
  EXPECT_EQ(HashOfFolder(), before);
}

}  // namespace
}  // namespace farside::pool
