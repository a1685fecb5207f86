// The bytes of the reference table, as docs/layouts/reference.md shows them.
#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"

namespace farside::index::reference {
namespace {

TEST(ReferenceLayout, HeadWord) {
  const Head head = Head(Head::Version::Set(Head::Image::Set(0, 1), 7)).WithOwner(0x123456);
  EXPECT_EQ(head.word(), 0x00000007'01123456u);
  EXPECT_EQ(head.Committed().word(), 0x00000008'00000000u);
  // The version skips 0, which means "never written".
  EXPECT_EQ(Head(Head::Version::Set(0, 0xffffffff)).Committed().version(), 1u);
}

TEST(ReferenceLayout, GoldenBytesOfOneBucket) {
  // Given a table of one bucket.
  // When "key" is put, updated, and read.
  // Expect exactly these bytes.
  const auto engine = MakeReferenceEngine({{"buckets", "1"}});
  fabric::sim::SimOptions options;
  options.region_bytes = {(*engine)->region_bytes()};
  options.chaos = fabric::sim::Chaos::Calm();
  fabric::sim::SimFabric world(options);
  auto client = std::move(*world.Connect());
  auto table = (*engine)->Open(*client);
  for (const char* value : {"old", "new value"}) {
    fabric::Op op(*client, fabric::OpKind::kInsert);
    ASSERT_TRUE(fabric::Run(*client, table->Put(op, "key", value)).ok());
  }
  const std::span<std::byte> bytes = world.memory(fabric::NodeId{0});
  EXPECT_EQ(HexDump(bytes.subspan(0, 128)),
            "00000000  00 00 00 00 02 00 00 00  00 00 00 00 00 00 00 00  |................|\n"   // head: version 2, image 0
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  3a f4 c0 4c 53 5b 23 ac  02 00 00 00 00 00 00 00  |:..LS[#.........|\n"   // image 0: checksum, version
            "00000050  01 03 09 00 6b 65 79 00  00 00 00 00 00 00 00 00  |....key.........|\n"   // entry 0
            "00000060  00 00 00 00 6e 65 77 20  76 61 6c 75 65 00 00 00  |....new value...|\n"
            "00000070  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  EXPECT_EQ(HexDump(bytes.subspan(256, 48), 256),
            "00000100  a5 42 9c bd 28 a6 ef 0d  01 00 00 00 00 00 00 00  |.B..(...........|\n"   // image 1: version 1
            "00000110  01 03 03 00 6b 65 79 00  00 00 00 00 00 00 00 00  |....key.........|\n"
            "00000120  00 00 00 00 6f 6c 64 00  00 00 00 00 00 00 00 00  |....old.........|\n");
  table.reset();
  client.reset();
}

}  // namespace
}  // namespace farside::index::reference
