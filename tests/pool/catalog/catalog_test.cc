// The catalog without concurrency: names, errors, and everything that may stand in an entry.
#include "pool/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using testing::HasSubstr;

constexpr Geometry kGeometry{
    .region_bytes = 128 * 1024, .client_slots = 8, .table_slots = 3, .chunk_bytes = 16 * 1024};
constexpr uint64_t kRoot = 64 * 1024;

Task<std::vector<FarAddr>> RootsAt(std::vector<FarAddr> roots) { co_return roots; }
Task<std::vector<FarAddr>> NoMemory() { co_return Error(ErrorCode::kOutOfMemory, "no chunk is free"); }
Task<Done> Nothing() { co_return Done{}; }
Task<Done> Fails() { co_return Error(ErrorCode::kContended, "a client does not move on"); }

// One client of a pool of two nodes, with the catalog of the first.
class CatalogTest : public testing::Test {
 protected:
  CatalogTest()
      : world_(Options()),
        client_(std::move(*world_.Connect())),
        member_(*client_, NodeId{0}, kGeometry, {}),
        catalog_(member_) {
    Op op(*client_, OpKind::kMaintenance);
    EXPECT_TRUE(fabric::Run(*client_, member_.Join(op)).ok());
  }

  static fabric::sim::SimOptions Options() {
    fabric::sim::SimOptions options;
    options.region_bytes = {kGeometry.region_bytes, kGeometry.region_bytes};
    options.chaos = fabric::sim::Chaos::Calm();
    return options;
  }

  static TableSpec Spec(std::string name) {
    TableSpec spec;
    spec.name = std::move(name);
    spec.engine = "shard";
    spec.options = "buckets=16 fill=0.5";
    spec.engine_layout_version = 4;
    spec.nodes = {NodeId{0}, NodeId{1}};
    return spec;
  }
  static std::vector<FarAddr> GoodRoots() {
    return {FarAddr(NodeId{0}, kRoot), FarAddr(NodeId{1}, kRoot + 64)};
  }

  Result<CreateOutcome> Create(TableSpec spec, std::vector<FarAddr> roots = GoodRoots()) {
    return CreateWith(std::move(spec), [roots](Op&, TableInfo) { return RootsAt(roots); });
  }
  Result<CreateOutcome> CreateWith(TableSpec spec, Catalog::MakeRoots make) {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, catalog_.Create(op, std::move(spec), std::move(make)));
  }
  Result<TableInfo> Open(std::string name) {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, catalog_.Open(op, std::move(name)));
  }
  Result<std::vector<TableInfo>> List() {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, catalog_.List(op));
  }
  Result<bool> StillThere(TableInfo table) {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, catalog_.StillThere(op, std::move(table)));
  }
  Result<Done> Drop(
      std::string name, Catalog::WaitForGrace wait = [](Op&) { return Nothing(); },
      Catalog::FreeTable free = [](Op&, TableInfo) { return Nothing(); }) {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, catalog_.Drop(op, std::move(name), std::move(wait), std::move(free)));
  }

  TableEntry Entry(uint32_t slot) {
    TableEntry entry;
    std::memcpy(&entry, world_.memory(NodeId{0}).data() + kGeometry.table_entry(slot), sizeof(entry));
    return entry;
  }
  void SetEntry(uint32_t slot, const TableEntry& entry) {
    std::memcpy(world_.memory(NodeId{0}).data() + kGeometry.table_entry(slot), &entry, sizeof(entry));
  }
  uint64_t Word(uint64_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, world_.memory(NodeId{0}).data() + offset, sizeof(word));
    return word;
  }

  fabric::sim::SimFabric world_;
  std::unique_ptr<fabric::Client> client_;
  Membership member_;
  Catalog catalog_;
};

TEST_F(CatalogTest, CreatedTableIsOpenedWithEverythingItWasCreatedWith) {
  const Result<CreateOutcome> created = Create(Spec("users"));
  ASSERT_TRUE(created.ok()) << created.error().ToString();
  EXPECT_TRUE(created->created);
  const Result<TableInfo> table = Open("users");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->name, "users");
  EXPECT_EQ(table->engine, "shard");
  EXPECT_EQ(table->options, "buckets=16 fill=0.5");
  EXPECT_EQ(table->engine_layout_version, 4u);
  EXPECT_EQ(table->nodes, (std::vector<NodeId>{NodeId{0}, NodeId{1}}));
  EXPECT_EQ(table->roots, GoodRoots());
  EXPECT_EQ(table->incarnation, created->table.incarnation);
  EXPECT_EQ(table->entry, created->table.entry);
  EXPECT_EQ(Word(kCatalogChangesOffset), 1u);
  EXPECT_EQ(Word(kCatalogLockOffset), 0u);
}

TEST_F(CatalogTest, CreatingWhatIsThere_OpensIt) {
  ASSERT_TRUE(Create(Spec("users")).ok());
  TableSpec other = Spec("users");
  other.engine = "chime";
  const Result<CreateOutcome> again = CreateWith(other, [](Op&, TableInfo) { return NoMemory(); });
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->table.engine, "shard") << "what is there, not what was asked for";
}

TEST_F(CatalogTest, DropAndCreateAgain_IsAnotherTable) {
  const TableInfo first = Create(Spec("users"))->table;
  EXPECT_TRUE(*StillThere(first));
  ASSERT_TRUE(Drop("users").ok());
  EXPECT_FALSE(*StillThere(first));
  EXPECT_EQ(Open("users").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Drop("users").error().code(), ErrorCode::kNotFound);
  const TableInfo second = Create(Spec("users"))->table;
  EXPECT_EQ(second.entry, first.entry) << "the slot is used again";
  EXPECT_GT(second.incarnation, first.incarnation);
  EXPECT_FALSE(*StillThere(first));
  EXPECT_TRUE(*StillThere(second));
}

TEST_F(CatalogTest, DropHappensInThisOrder) {
  // Expect: announced before any client waits, waited before anything is freed, and the name is free all the
  // while.
  std::vector<std::string> log;
  ASSERT_TRUE(Create(Spec("users")).ok());
  const uint64_t changes = Word(kCatalogChangesOffset);
  const auto wait = [&](Op&) {
    log.push_back(Word(kCatalogChangesOffset) > changes ? "announced" : "not announced");
    log.push_back(Word(kCatalogLockOffset) == 0 ? "unlocked" : "locked");
    return Nothing();
  };
  const auto free = [&](Op&, TableInfo table) {
    log.push_back("free " + table.name);
    log.push_back(Entry(0).state.state() == TableState::kDropping ? "dropping" : "?");
    log.push_back(Entry(0).worker == member_.self().bits() ? "by me" : "by another");
    return Nothing();
  };
  ASSERT_TRUE(Drop("users", wait, free).ok());
  EXPECT_EQ(log, (std::vector<std::string>{"announced", "unlocked", "free users", "dropping", "by me"}));
  EXPECT_EQ(Entry(0).state.state(), TableState::kFree);
}

TEST_F(CatalogTest, DropWhoseGraceFails_IsDroppedAllTheSameAndSaysSo) {
  ASSERT_TRUE(Create(Spec("users")).ok());
  bool freed = false;
  const auto free = [&](Op&, TableInfo) {
    freed = true;
    return Nothing();
  };
  const Result<Done> dropped = Drop(
      "users", [](Op&) { return Fails(); }, free);
  ASSERT_FALSE(dropped.ok());
  EXPECT_THAT(dropped.error().message(),
              HasSubstr("the table \"users\" is dropped, but not all of it is free yet"));
  EXPECT_FALSE(freed) << "what a client may still use must not be freed";
  EXPECT_EQ(Open("users").error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(Create(Spec("users"))->created);
}

TEST_F(CatalogTest, CreateThatCannotMakeRoots_LeavesNothing) {
  // Given a create whose roots fail, or are none.
  // Expect the error, no table, no entry lost, and no lock held.
  const std::vector<std::vector<FarAddr>> bad = {
      {},
      {FarAddr(NodeId{0}, kRoot)},
      {FarAddr(NodeId{1}, kRoot), FarAddr(NodeId{0}, kRoot)},
      {FarAddr(NodeId{0}, kRoot + 8), FarAddr(NodeId{1}, kRoot)},
      {FarAddr(NodeId{0}, kRoot), FarAddr(NodeId{1}, kGeometry.region_bytes)},
  };
  for (const std::vector<FarAddr>& roots : bad) {
    const Result<CreateOutcome> created = Create(Spec("users"), roots);
    ASSERT_FALSE(created.ok());
    EXPECT_EQ(created.error().code(), ErrorCode::kInvalidArgument);
  }
  const Result<CreateOutcome> full = CreateWith(Spec("users"), [](Op&, TableInfo) { return NoMemory(); });
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(full.error().message(), "no chunk is free");
  EXPECT_TRUE(List()->empty());
  EXPECT_EQ(Word(kCatalogLockOffset), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Create(Spec("t" + std::to_string(i))).ok());
}

TEST_F(CatalogTest, RootOnOneNodeOnly_IsFine) {
  // An ordered table has its root on its first node alone.
  const std::vector<FarAddr> roots = {FarAddr(NodeId{0}, kRoot), FarAddr(NodeId{1}, 0)};
  ASSERT_TRUE(Create(Spec("ordered"), roots).ok());
  EXPECT_EQ(Open("ordered")->roots, roots);
}

TEST_F(CatalogTest, AllSlotsTaken_SaysWhatToDo) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Create(Spec("t" + std::to_string(i))).ok());
  const Result<CreateOutcome> full = Create(Spec("one too many"));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(full.error().message(), HasSubstr("all 3 table slots of node 0 are taken"));
  EXPECT_THAT(full.error().message(), HasSubstr("drop a table"));
  EXPECT_EQ(Word(kCatalogLockOffset), 0u);
  EXPECT_FALSE(Create(Spec("t1"))->created) << "what is there can be opened";
}

TEST_F(CatalogTest, MissingTable_IsNamedTogetherWithSomeThatExist) {
  EXPECT_EQ(Open("userz").error().message(), "there is no table \"userz\"");
  ASSERT_TRUE(Create(Spec("users")).ok());
  ASSERT_TRUE(Create(Spec("orders")).ok());
  const Result<TableInfo> missing = Open("userz");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message(), "there is no table \"userz\"; there is \"orders\", \"users\"");
}

TEST_F(CatalogTest, ListIsSortedByName) {
  for (const char* name : {"pears", "apples", "figs"}) ASSERT_TRUE(Create(Spec(name)).ok());
  const Result<std::vector<TableInfo>> tables = List();
  ASSERT_TRUE(tables.ok());
  std::vector<std::string> names;
  for (const TableInfo& table : *tables) names.push_back(table.name);
  EXPECT_EQ(names, (std::vector<std::string>{"apples", "figs", "pears"}));
}

TEST_F(CatalogTest, OpenIsOneTripAndStillThereIsOne) {
  ASSERT_TRUE(Create(Spec("users")).ok());
  Op opening(*client_, OpKind::kMaintenance);
  const TableInfo table = *fabric::Run(*client_, catalog_.Open(opening, "users"));
  EXPECT_EQ(opening.tally().maintenance_trips, 1u);
  Op asking(*client_, OpKind::kMaintenance);
  ASSERT_TRUE(*fabric::Run(*client_, catalog_.StillThere(asking, table)));
  EXPECT_EQ(asking.tally().maintenance_trips, 1u);
  EXPECT_EQ(asking.tally().Verbs(), 1u);
}

// ---- names and options

TEST_F(CatalogTest, NamesOfAllSorts) {
  for (const char* name : {"a", "users", "Bücher", "表", "with space", "-x", "a:b,c=d", "😀"}) {
    EXPECT_TRUE(CheckTableName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckTableName(std::string(128, 'n')).ok());
  ASSERT_TRUE(Create(Spec(std::string(128, 'n'))).ok());
  EXPECT_EQ(Open(std::string(128, 'n'))->name, std::string(128, 'n'));

  using namespace std::string_literals;
  const std::vector<std::string> bad = {
      "",
      ".",
      "..",
      "a/b",
      "/",
      "new\nline",
      "\t",
      "nul\0here"s,
      "\x7f",
      "\x1b[31m",
      "\xc2\x9b"
      "31m",  // the 8-bit form of ESC [
      "\xff",
      "\xc3",
      "\xe2\x82",
      "\xc0\xaf",  // no UTF-8: bare bytes, cut off, overlong '/'
      "\xed\xa0\x80",
      "\xf4\x90\x80\x80",
      "\xf0\x80\x80\x80",
      "\xe0\x80\x80",
      "\x80",
  };
  for (const std::string& name : bad) {
    EXPECT_EQ(CheckTableName(name).error().code(), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(Create(Spec(name)).error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(Open(name).error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(Drop(name).error().code(), ErrorCode::kInvalidArgument);
  }
}

TEST_F(CatalogTest, NameOfAThousandBytes_IsOneClearError) {
  const Result<CreateOutcome> created = Create(Spec(std::string(1000, 'x')));
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().message(),
            "the name \"xxxxxxxxxxxxxxxx...\" has 1000 bytes; names of tables have at most 128");
}

TEST_F(CatalogTest, EnginesOptionsAndNodesAreChecked) {
  const auto refused = [&](auto change, std::string_view why) {
    TableSpec spec = Spec("t");
    change(spec);
    const Result<CreateOutcome> created = Create(spec);
    ASSERT_FALSE(created.ok());
    EXPECT_EQ(created.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(created.error().message(), HasSubstr(std::string(why)));
  };
  refused([](TableSpec& spec) { spec.engine.clear(); }, "1 to 32 printable");
  refused([](TableSpec& spec) { spec.engine.assign(33, 'e'); }, "1 to 32 printable");
  refused([](TableSpec& spec) { spec.options.assign(193, 'o'); }, "193 bytes; a table can record 192");
  refused([](TableSpec& spec) { spec.options = "a=\n"; }, "control characters");
  refused([](TableSpec& spec) { spec.nodes.clear(); }, "not on 0");
  refused([](TableSpec& spec) { spec.nodes = {NodeId{2}}; }, "names node 2, but the pool has 2");
  refused([](TableSpec& spec) { spec.nodes = {NodeId{1}, NodeId{1}}; }, "node 1 twice");
  refused([](TableSpec& spec) { spec.nodes.assign(17, NodeId{0}); }, "1 to 16 nodes, not on 17");
}

// ---- damage

TEST_F(CatalogTest, EveryFlippedBitOfALiveEntry_IsFoundOrHarmless) {
  // Given two tables, and one flipped bit in the entry of one of them.
  // Expect that it is never opened as anything but itself, and that the other one is.
  ASSERT_TRUE(Create(Spec("users")).ok());
  ASSERT_TRUE(Create(Spec("orders")).ok());
  const TableEntry whole = Entry(0);
  for (size_t bit = 0; bit < 8 * sizeof(TableEntry); ++bit) {
    TableEntry damaged = whole;
    reinterpret_cast<std::byte*>(&damaged)[bit / 8] ^= std::byte(1 << bit % 8);
    SetEntry(0, damaged);
    const Result<TableInfo> table = Open("users");
    if (bit >= 64 && bit < 128) {
      EXPECT_TRUE(table.ok()) << "no client looks at the worker of a live table";
    } else if (damaged.state.valid() && damaged.state.state() != TableState::kLive) {
      EXPECT_EQ(table.error().code(), ErrorCode::kNotFound) << "bit " << bit;
    } else {
      ASSERT_FALSE(table.ok()) << "bit " << bit;
      EXPECT_EQ(table.error().code(), ErrorCode::kCorrupt) << "bit " << bit;
      EXPECT_EQ(Create(Spec("new")).error().code(), ErrorCode::kCorrupt) << "it may be the damaged one";
      EXPECT_EQ(List().error().code(), ErrorCode::kCorrupt);
    }
    EXPECT_TRUE(Open("orders").ok()) << "bit " << bit;
    EXPECT_EQ(Word(kCatalogLockOffset), 0u);
  }
}

TEST_F(CatalogTest, ForgedEntriesWithARightChecksum_NeverCrashAClient) {
  // Given entries of random bytes, sealed as if a client had meant them.
  // Expect that whatever is accepted is a table that could have been created.
  Random random(11);
  const std::vector<uint64_t> regions = {kGeometry.region_bytes, kGeometry.region_bytes};
  const FarAddr at(NodeId{0}, kGeometry.table_entry(0));
  for (int i = 0; i < 20'000; ++i) {
    TableInfo base;
    base.name = "t";
    base.engine = "e";
    base.roots = GoodRoots();
    base.incarnation = 1;
    TableEntry entry{};
    entry.state = TableWord(TableState::kLive, 1);
    entry.body = EncodeTable(base);
    const auto bytes = std::as_writable_bytes(std::span(&entry.body, 1)).subspan(sizeof(entry.body.checksum));
    for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
      const size_t head = random.Chance(1, 2) ? 8 : bytes.size();
      bytes[random.Below(head)] = static_cast<std::byte>(random.Next());
    }
    entry.body.checksum = Hash64(bytes, entry.state.incarnation());
    const Result<TableInfo> table = DecodeTable(entry, at, regions);
    if (!table.ok()) {
      EXPECT_EQ(table.error().code(), ErrorCode::kCorrupt);
      continue;
    }
    EXPECT_TRUE(CheckTableName(table->name).ok());
    EXPECT_EQ(table->nodes.size(), table->roots.size());
    for (FarAddr root : table->roots) EXPECT_LT(root.offset, regions[Index(root.node)]);
  }
}

TEST_F(CatalogTest, NameThatStandsTwice_IsDamageToAList) {
  ASSERT_TRUE(Create(Spec("users")).ok());
  SetEntry(1, Entry(0));
  EXPECT_EQ(List().error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace farside::pool
