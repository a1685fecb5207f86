// The bytes of the catalog, as docs/layouts/catalog.md shows them.
#include "pool/catalog/layout.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.h"
#include "pool/catalog/catalog.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;

TEST(CatalogLayout, StateWord) {
  const TableWord live(TableState::kLive, 7);
  EXPECT_EQ(live.word(), 0x00000007'00000002u);
  EXPECT_EQ(live.With(TableState::kDropping).word(), 0x00000007'00000003u);
  EXPECT_EQ(live.With(TableState::kFree).word(), 0x00000007'00000000u);
  EXPECT_EQ(live.With(TableState::kFree).Claimed().word(), 0x00000008'00000001u);
  EXPECT_EQ(TableWord().Claimed(), TableWord(TableState::kCreating, 1)) << "fresh memory is a free entry";
  EXPECT_TRUE(live.valid());
  EXPECT_FALSE(TableWord(0x00000007'00000004u).valid()) << "no such state";
  EXPECT_FALSE(TableWord(0x00000007'00000012u).valid()) << "unused bits are zero";
}

TEST(CatalogLayout, RootWord) {
  const FarAddr root(NodeId{0x1234}, 0x0000'5678'9abc'de40);
  EXPECT_EQ(RootWord(root).word(), 0x1234'5678'9abc'de40u);
  EXPECT_EQ(RootWord(root).address(), root);
}

TEST(CatalogLayout, GoldenBytesOfOneEntry) {
  // Given a table on two nodes, the third to use its entry.
  // Expect exactly these bytes.
  TableInfo table;
  table.name = "users";
  table.engine = "shard";
  table.options = "buckets=1024";
  table.engine_layout_version = 5;
  table.incarnation = 3;
  table.roots = {FarAddr(NodeId{0}, 0x10000), FarAddr(NodeId{2}, 0x20040)};
  TableEntry entry{};
  entry.state = TableWord(TableState::kLive, 3);
  entry.worker = Owner(2, 9).bits();
  entry.body = EncodeTable(table);
  const auto bytes = std::as_bytes(std::span(&entry, 1));
  EXPECT_EQ(
      HexDump(bytes.first(64)),
      "00000000  02 00 00 00 03 00 00 00  02 90 00 00 00 00 00 00  |................|\n"  // state, worker
      "00000010  e3 ff f4 7a 7f 82 6a da  05 00 00 00 05 05 0c 02  |...z..j.........|\n"  // checksum, version, sizes
      "00000020  75 73 65 72 73 00 00 00  00 00 00 00 00 00 00 00  |users...........|\n"
      "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  EXPECT_EQ(HexDump(bytes.subspan(160, 16), 160),
            "000000a0  73 68 61 72 64 00 00 00  00 00 00 00 00 00 00 00  |shard...........|\n");
  EXPECT_EQ(HexDump(bytes.subspan(192, 16), 192),
            "000000c0  62 75 63 6b 65 74 73 3d  31 30 32 34 00 00 00 00  |buckets=1024....|\n");
  EXPECT_EQ(HexDump(bytes.subspan(384, 32), 384),
            "00000180  00 00 01 00 00 00 00 00  40 00 02 00 00 00 02 00  |........@.......|\n"
            "00000190  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
}

}  // namespace
}  // namespace farside::pool
