// The bytes of the reference table, as docs/layouts/reference.md shows them.
#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"
#include "pool/region/superblock.h"
#include "store/registration.h"

namespace farside::index::reference {
namespace {

TEST(ReferenceLayout, HeadWord) {
  const Head head = Head(Head::Version::Set(Head::Image::Set(0, 1), 7)).WithOwner(pool::Owner(3, 5));
  EXPECT_EQ(head.word(), (uint64_t{7} << 40 | uint64_t{1} << 32 | 0x5003));
  EXPECT_EQ(head.Committed().word(), uint64_t{8} << 40);
  // A client that takes over skips the version that its predecessor may have used.
  EXPECT_EQ(head.TakenOverBy(pool::Owner(4, 1)).Committed().word(), uint64_t{9} << 40);
  // The version skips 0, which means "never written".
  EXPECT_EQ(Head(Head::Version::Set(0, Head::Version::kMax)).Committed().version(), 1u);
}

TEST(ReferenceLayout, EntryWord) {
  const Entry entry(0x12340, 128, 0xffc0000000000001);
  EXPECT_EQ(entry.offset(), 0x12340u);
  EXPECT_EQ(entry.bytes(), 128u);
  EXPECT_TRUE(entry.MayBe(0xffc0000000000000));
  EXPECT_FALSE(entry.MayBe(0));
  // A size that does not fit is left to the block's own header.
  EXPECT_EQ(Entry(64, uint64_t{4096} * 64, 0).bytes(), 0u);
  EXPECT_EQ(Entry(64, uint64_t{4095} * 64, 0).bytes(), uint64_t{4095} * 64);
}

Task<Done> PutTwice(fabric::Client& client, std::vector<fabric::FarAddr>& roots) {
  fabric::Op op(client, fabric::OpKind::kMaintenance);
  const auto find = [](std::string_view, const OptionMap& options) { return MakeReferenceEngine(options); };
  const std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, client, find, {});
  const OptionMap options = {{"buckets", "1"}};
  const OpenTable table = co_await session->tables().CreateOrOpen(op, "t", "reference", options);
  roots = table.info.roots;
  co_await table.index->Put(op, "key", "old");
  co_await table.index->Put(op, "key", "new value");
  co_return Done{};
}

TEST(ReferenceLayout, GoldenBytesOfOneBucket) {
  // Given a table of one bucket.
  // When "key" is put and put again.
  // Expect exactly these bytes.
  fabric::sim::SimFabric world({.region_bytes = {512 * 1024}, .chaos = fabric::sim::Chaos::Calm()});
  const std::span<std::byte> bytes = world.memory(fabric::NodeId{0});
  ASSERT_TRUE(pool::FormatVolatile(bytes, {.chunk_bytes = 4096}, {1, 2}).ok());
  const auto client = std::move(*world.Connect());
  std::vector<fabric::FarAddr> roots;
  ASSERT_TRUE(fabric::Run(*client, PutTwice(*client, roots)).ok());
  const uint64_t bucket = pool::RoundUp(roots[0].offset, sizeof(Bucket));
  EXPECT_EQ(HexDump(bytes.subspan(bucket, 16)),
            "00000000  00 00 00 00 00 02 00 00  00 00 00 00 00 00 00 00  |................|\n");
  EXPECT_EQ(HexDump(bytes.subspan(bucket + 64, 32), 64),
            "00000040  93 9a b6 f4 5b 63 9d 2f  02 00 00 00 00 00 00 00  |....[c./........|\n"
            "00000050  82 06 00 00 00 04 c0 bb  00 00 00 00 00 00 00 00  |................|\n");
  EXPECT_EQ(HexDump(bytes.subspan(bucket + 256, 32), 256),
            "00000100  d2 69 6f ca 97 e2 7a a3  01 00 00 00 00 00 00 00  |.io...z.........|\n"
            "00000110  81 06 00 00 00 04 c0 bb  00 00 00 00 00 00 00 00  |................|\n");
  const uint64_t block = Entry::Offset::Get(LoadU64(bytes.data() + bucket + 64 + 16)) * pool::kLine;
  EXPECT_EQ(HexDump(bytes.subspan(block, 64)),
            "00000000  03 00 00 00 09 00 00 00  e3 65 51 a0 63 0d ea bb  |.........eQ.c...|\n"
            "00000010  90 dd 84 f2 0c e9 a1 56  6b 65 79 6e 65 77 20 76  |.......Vkeynew v|\n"
            "00000020  61 6c 75 65 00 00 00 00  00 00 00 00 00 00 00 00  |alue............|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
}

}  // namespace
}  // namespace farside::index::reference
