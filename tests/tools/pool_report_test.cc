// What fsck and table print, from data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tools/fsck/report.h"
#include "tools/json.h"
#include "tools/table/report.h"

namespace farside::tools {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using pool::Severity;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

PoolReport CleanReport() {
  PoolReport report;
  report.tables.push_back({"users", "reference", TableSize{1000, 2}, ""});
  report.nodes.resize(1);
  report.nodes[0].bytes.reachable = 1000;
  report.nodes[0].bytes.free_chunks = 2000;
  report.nodes[0].bytes.free_blocks = 1000;
  report.nodes[0].bytes.metadata = 96;
  return report;
}

std::string Text(const PoolReport& report) {
  return FsckText({.kind = pool::PoolUrl::Kind::kFile, .path = "a.pool", .size = {}}, report, Paint(false));
}

TEST(FsckText, Clean) {
  EXPECT_EQ(Text(CleanReport()),
            "pool          a.pool, 4KiB\n"
            "tables        users (reference), 2 keys, 1,000 bytes\n"
            "\n"
            "reachable                1,000   24.4 %\n"
            "free                     3,000   73.2 %\n"
            "overhead                     0    0.0 %\n"
            "metadata                    96    2.3 %\n"
            "leaked                       0    0.0 %\n"
            "damaged                      0    0.0 %\n"
            "all                      4,096  100.0 %\n"
            "\n"
            "clean: every byte is accounted for\n");
}

TEST(FsckText, Findings_TheWorstFirst_OneLineEach) {
  PoolReport report = CleanReport();
  report.nodes[0].Add(Severity::kNote, FarAddr(NodeId{0}, 0x40), "a note", "nothing");
  report.nodes[0].Add(Severity::kLeak, FarAddr(NodeId{0}, 0x80), "a leak", "sweep");
  report.nodes[0].Add(Severity::kDamage, FarAddr(NodeId{0}, 0xc0), "a damage", "restore");
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(Text(report), StartsWith("damage  n0+0xc0     a damage -> restore\n"
                                       "leak    n0+0x80     a leak -> sweep\n"
                                       "note    n0+0x40     a note -> nothing\n"
                                       "\n"));
  EXPECT_THAT(Text(report), EndsWith("NOT CLEAN: 1 damage, 1 leak\n"));
}

TEST(FsckText, ManyFindings_AreCutShort) {
  PoolReport report = CleanReport();
  for (int i = 0; i < 3000; ++i) {
    report.nodes[0].Add(Severity::kLeak, FarAddr(NodeId{0}, 0x80), "a leak", "sweep");
  }
  EXPECT_THAT(Text(report), HasSubstr("\n... and 2,950 more; --json has up to 1,000 of each node\n"));
  EXPECT_THAT(Text(report), EndsWith("NOT CLEAN: 0 damages, 3,000 leaks\n"));
}

TEST(FsckText, TableThatWasNotWalked_NothingIsCalledClean) {
  PoolReport report = CleanReport();
  report.tables[0].size.reset();
  report.tables[0].why = "there is no engine 'x'";
  report.complete = false;
  report.nodes[0].bytes.unknown = 64;
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(Text(report), HasSubstr("users (reference), not walked to its end\n"));
  EXPECT_THAT(Text(report), HasSubstr("not known                   64    1.5 %\n"));
  EXPECT_THAT(Text(report), EndsWith("so what is leaked cannot be told\n"));
}

TEST(FsckText, PoolsAtNodes_AreNamedByTheirAddresses) {
  pool::PoolUrl url{.kind = pool::PoolUrl::Kind::kTcp, .path = "", .size = {}};
  url.names = {"a:7700"};
  EXPECT_THAT(FsckText(url, CleanReport(), Paint(false)), HasSubstr("pool          tcp://a:7700, "));
  url.names = {"a:7700", "b:7700"};
  EXPECT_THAT(FsckText(url, CleanReport(), Paint(false)), HasSubstr("tcp://a:7700,b:7700, "));
  EXPECT_THAT(FsckText(url, CleanReport(), Paint(false)), HasSubstr(" on 2 nodes\n"));
  url.kind = pool::PoolUrl::Kind::kShm;
  url.names = {"pool"};
  EXPECT_THAT(FsckText(url, CleanReport(), Paint(false)), HasSubstr("pool          shm:pool, "));
}

TEST(FsckText, HostileNamesOfFiles_DoNotReachTheTerminal) {
  const pool::PoolUrl url{.kind = pool::PoolUrl::Kind::kFile, .path = "a\033[2J", .size = {}};
  EXPECT_THAT(FsckText(url, CleanReport(), Paint(false)), Not(HasSubstr("\033")));
}

pool::TableInfo Users() {
  pool::TableInfo info;
  info.name = "users";
  info.engine = "reference";
  info.options = "buckets=64";
  info.engine_layout_version = 2;
  info.incarnation = 7;
  info.nodes = {NodeId{0}, NodeId{1}};
  info.roots = {FarAddr(NodeId{0}, 0x1000), FarAddr(NodeId{1}, 0)};
  return info;
}

TEST(TableText, List_ColumnsAreAlignedByCharacters) {
  TableList list;
  list.tables = {Users(), Users()};
  list.tables[1].name = "s\xc3\xa9ssions";
  list.tables[1].options = "";
  EXPECT_EQ(TableText(list),
            "TABLE     ENGINE     NODES  OPTIONS\n"
            "users     reference  0,1    buckets=64\n"
            "s\xc3\xa9ssions  reference  0,1    -\n");
  EXPECT_EQ(TableText(TableList{}), "no tables\n");
  EXPECT_EQ(TableText(TableList{.tables = {}, .embedded = true}),
            "no tables: an embedded pool lives only as long as its process\n");
}

TEST(TableText, NamesThatTerminalsWouldObey_AreEscaped) {
  // Given a table whose name, engine and options turn the direction of text around, as a hostile client may
  // have written them. Expect them escaped wherever they are shown.
  pool::TableInfo info = Users();
  info.name = "users\xe2\x80\xae";
  info.engine = "e\xe2\x80\xae";
  info.options = "o=\xe2\x80\xae";
  PoolReport report = CleanReport();
  report.tables.push_back({info.name, info.engine, {}, ""});
  report.nodes.front().Add(pool::Severity::kNote, {}, "table " + info.name, "none");
  const std::string all = TableText(TableList{.tables = {info}, .missing = {}}) +
                          TableText(ShownTable{info, {}, info.name}) +
                          TableText(MadeTable{.info = info, .created = true}) +
                          TableText(MadeTable{.info = info}) + TableText(DroppedTable{info.name, {}, ""}) +
                          TableText(DroppedTable{info.name, TableSize{1, 1}, ""}) + Text(report);
  EXPECT_THAT(all, Not(HasSubstr("\xe2")));
  EXPECT_THAT(all, HasSubstr("users\\xe2\\x80\\xae"));
}

TEST(TableText, Show) {
  EXPECT_EQ(TableText(ShownTable{Users(), TableSize{40'960, 3}, ""}),
            "table         users\n"
            "engine        reference, layout version 2\n"
            "options       buckets=64\n"
            "nodes         0,1\n"
            "incarnation   7\n"
            "roots         n0+0x1000 -\n"
            "keys          3\n"
            "bytes         40,960\n");
  EXPECT_THAT(TableText(ShownTable{Users(), {}, "it is damaged"}),
              EndsWith("keys          not known: it is damaged\nbytes         not known: it is damaged\n"));
}

TEST(TableJson, OptionsAreAnObject) {
  EXPECT_EQ(ToJson(ShownTable{Users(), TableSize{40'960, 3}, ""}),
            R"({"name":"users","engine":"reference","options":{"buckets":"64"},"layout_version":2,)"
            R"("incarnation":7,"nodes":[0,1],"roots":[{"node":0,"offset":4096},{"node":1,"offset":0}],)"
            R"("keys":3,"bytes":40960,"why":null})"
            "\n");
}

}  // namespace
}  // namespace farside::tools
