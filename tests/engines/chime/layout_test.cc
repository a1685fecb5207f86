// The bytes of the chime table, as docs/layouts/chime.md shows them.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/chime/chime.h"
#include "pool/region/superblock.h"
#include "store/registration.h"

namespace farside::index::chime {
namespace {

TEST(ChimeLayout, NodePointers) {
  const NodePtr leaf = NodePtr::To(3, 0x12340, 0);
  EXPECT_EQ(leaf.word(), (uint64_t{3} << 36 | 0x48d));
  EXPECT_TRUE(leaf.is_leaf());
  const NodePtr inner = NodePtr::To(0, 0x40, 2);
  EXPECT_EQ(inner.word(), (uint64_t{2} << 42 | 1));
  EXPECT_EQ(inner.level(), 2u);
  const pool::NodeList nodes({fabric::NodeId{7}, fabric::NodeId{8}});
  EXPECT_EQ(inner.at(nodes), fabric::FarAddr(fabric::NodeId{7}, 0x40));
  EXPECT_FALSE(IsOnNodes(leaf.word(), nodes));
  EXPECT_EQ(leaf.at(nodes).node, fabric::kNowhere);
}

TEST(ChimeLayout, BlockAndBoundReferences) {
  const BlockRef block = BlockRef::To(1, 0x1000, 128, 0xabcd);
  EXPECT_EQ(block.word(), (uint64_t{0xabcd} << 48 | uint64_t{2} << 42 | uint64_t{1} << 36 | 0x40));
  // A size that does not fit is left to the block's own header.
  EXPECT_EQ(BlockRef::To(0, 64, 63 * 64, 0).bytes(), 63u * 64);
  EXPECT_EQ(BlockRef::To(0, 64, 64 * 64, 0).bytes(), 0u);
  EXPECT_EQ(BoundRef::Short(5).word(), uint64_t{5} << 48);
  EXPECT_EQ(BoundRef::Beyond().word(), uint64_t{1} << 52);
  EXPECT_EQ(BoundRef::InBlock(1, 0x1000, 128).word(),
            (uint64_t{15} << 48 | uint64_t{2} << 42 | uint64_t{1} << 36 | 0x40));
  EXPECT_EQ(BoundRef::InBlock(1, 0x1000, 128).block().bytes(), 128u);
}

TEST(ChimeLayout, SizesOfNodesAndNeighbourhoods) {
  // Expect exactly what docs/engines/chime.md says of the usual shape.
  const Shape of_bytes;
  const Shape of_inline{.inline_keys = true};
  EXPECT_EQ(of_bytes.leaf_bytes(), 1088u);
  EXPECT_EQ(of_bytes.inner_bytes(), 2112u);
  EXPECT_EQ(of_inline.leaf_bytes(), 1088u);
  EXPECT_EQ(of_inline.inner_bytes(), 1088u);
  const auto neighbourhoods = [](const Shape& shape) {
    uint64_t bytes = 0;
    for (size_t home = 0; home < shape.span; ++home)
      bytes += shape.tail_bytes(home) + shape.wrapped_bytes(home);
    return bytes;
  };
  EXPECT_EQ(neighbourhoods(of_bytes), 64u * 128);
  EXPECT_EQ(neighbourhoods(of_inline), 64u * 128);
  // No entry lies in two lines, nor does a pivot.
  for (const Shape& shape : {of_bytes, of_inline}) {
    for (size_t slot = 0; slot < shape.span; ++slot) {
      EXPECT_EQ(SlotOffset(slot) / pool::kLine, (SlotOffset(slot) + kEntryBytes - 1) / pool::kLine);
      EXPECT_EQ(shape.PivotOffset(slot) / pool::kLine,
                (shape.PivotOffset(slot) + shape.pivot_bytes() - 1) / pool::kLine);
    }
  }
}

TEST(ChimeLayout, LockOfANode) {
  // Given the lock of a leaf. Expect that its count stays when it is taken and freed, and ends at its most.
  const NodeLock free = NodeLock().Raised().Raised();
  EXPECT_EQ(free.word(), 0x00000002'00000000u);
  const NodeLock held = free.HeldBy(pool::Owner(5, 3));
  EXPECT_EQ(held.word(), 0x00000002'00003005u);
  EXPECT_EQ(held.owner(), pool::Owner(5, 3));
  EXPECT_EQ(held.count(), 2u);
  EXPECT_FALSE(held.free());
  EXPECT_EQ(held.Freed(), free);
  const NodeLock most(uint64_t{NodeLock::kMostCount} << 32);
  EXPECT_EQ(most.Raised(), most);
}

TEST(ChimeLayout, EntriesOfBothFormats_ComeBackAsTheyWere) {
  // Given entries of extreme keys and values. When they are stored and loaded. Expect the same entries, and
  // that one which is not used leaves no reference behind.
  for (const bool inline_keys : {false, true}) {
    const Shape shape{.inline_keys = inline_keys};
    std::array<std::byte, kEntryBytes> bytes;
    for (const uint64_t key : {uint64_t{0}, uint64_t{1}, kMiddle - 1, kMiddle, kMiddle + 1, ~uint64_t{0}}) {
      // With keys=bytes no value is 0: the first line of a memory node is the pool's.
      for (const uint64_t value : {inline_keys ? uint64_t{0} : uint64_t{1}, ~uint64_t{0}}) {
        const Entry entry{.used = true, .key = key, .value = value};
        StoreEntry(shape, bytes.data(), entry);
        EXPECT_EQ(LoadEntry(shape, HalfOf(key), bytes.data()), entry);
      }
      StoreEntry(shape, bytes.data(), {.used = false, .key = key, .value = ~uint64_t{0}});
      EXPECT_FALSE(LoadEntry(shape, HalfOf(key), bytes.data()).used);
    }
  }
}

TEST(ChimeLayout, AnEntryThatIsNotUsed_IsZeros) {
  // Given an entry with keys=inline. When it is stored as one that is not used. Expect nothing of it.
  const Shape shape{.inline_keys = true};
  std::array<std::byte, kEntryBytes> bytes;
  StoreEntry(shape, bytes.data(), {.used = false, .key = 1, .value = 2});
  EXPECT_EQ(bytes, (std::array<std::byte, kEntryBytes>{}));
}

TEST(ChimeLayout, HalfOfALeaf_FollowsFromItsFence) {
  // Given leaves that end before, at and behind the middle, or nowhere. Expect those of the lower half to be
  // the ones that end not behind it.
  const auto half = [](uint64_t fence, BoundRef ref) {
    Header header{};
    header.fence_prefix = fence;
    header.fence_ref = ref.word();
    return HalfOf(header);
  };
  EXPECT_EQ(half(1, BoundRef::Short(8)), Half::kLower);
  EXPECT_EQ(half(kMiddle, BoundRef::Short(8)), Half::kLower);
  EXPECT_EQ(half(kMiddle + 1, BoundRef::Short(8)), Half::kUpper);
  EXPECT_EQ(half(~uint64_t{0}, BoundRef::Short(8)), Half::kUpper);
  EXPECT_EQ(half(0, BoundRef::Beyond()), Half::kUpper);
  EXPECT_EQ(HalfOf(kMiddle - 1), Half::kLower);
  EXPECT_EQ(HalfOf(kMiddle), Half::kUpper);
}

Task<Done> PutSome(fabric::Client& client, OptionMap options,
                   std::vector<std::pair<std::string, std::string>> records,
                   std::vector<fabric::FarAddr>& roots) {
  fabric::Op op(client, fabric::OpKind::kMaintenance);
  const auto find = [](std::string_view, const OptionMap& some) { return MakeChimeEngine(some); };
  const std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, client, find, {});
  const OpenTable table = co_await session->tables().CreateOrOpen(op, "t", "chime", options);
  roots = table.info.roots;
  for (const auto& [key, value] : records) co_await table.index->Put(op, key, value);
  co_return Done{};
}

// A table on one node, and its bytes.
struct Example {
  Example(const OptionMap& options, const std::vector<std::pair<std::string, std::string>>& records)
      : world({.region_bytes = {512 * 1024}, .chaos = fabric::sim::Chaos::Calm()}),
        bytes(world.memory(fabric::NodeId{0})) {
    EXPECT_TRUE(pool::FormatVolatile(bytes, {.chunk_bytes = 4096}, {1, 2}).ok());
    const auto client = std::move(*world.Connect());
    std::vector<fabric::FarAddr> roots;
    EXPECT_TRUE(fabric::Run(*client, PutSome(*client, options, records, roots)).ok());
    root = roots[0].offset;
  }
  // Where the word at an offset points to.
  uint64_t Follow(uint64_t offset) const {
    return LineBits::Get(LoadU64(bytes.data() + offset)) * pool::kLine;
  }
  std::string Dump(uint64_t offset, uint64_t size) const { return HexDump(bytes.subspan(offset, size)); }

  fabric::sim::SimFabric world;
  std::span<std::byte> bytes;
  uint64_t root = 0;
};

TEST(ChimeLayout, GoldenBytesOfATableWithInlineKeys) {
  // Given leaves of two entries. When three keys are put below the middle, and one above. Expect exactly
  // these bytes.
  const Example example({{"keys", "inline"}, {"span", "2"}, {"neighbourhood", "2"}, {"fanout", "4"}},
                        {{"apple...", "red....."},
                         {"banana..", "yellow.."},
                         {"cherry..", "dark red"},
                         {"\u00e9clair.", "brown..."}});
  EXPECT_EQ(example.Dump(example.root, 16),
            "00000000  82 06 00 00 00 08 00 00  00 00 00 00 00 00 00 00  |................|\n");
  const uint64_t top = example.Follow(example.root);
  EXPECT_EQ(example.Dump(top, 128),
            "00000000  00 00 00 00 00 00 00 00  63 68 69 6d 02 00 00 00  |........chim....|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 10 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  00 00 00 00 00 00 00 00  84 06 00 00 00 04 00 00  |................|\n"
            "00000050  00 00 00 00 00 00 00 80  86 06 00 00 00 04 00 00  |................|\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000070  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  const uint64_t inner = example.Follow(top + 64 + 8);
  EXPECT_EQ(example.Dump(inner, 128),
            "00000000  00 00 00 00 00 00 00 00  63 68 69 6d 01 00 00 00  |........chim....|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 80  |................|\n"
            "00000020  00 00 00 00 00 00 08 00  86 06 00 00 00 04 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  00 00 00 00 00 00 00 00  88 06 00 00 00 00 00 00  |................|\n"
            "00000050  2e 2e 61 6e 61 6e 61 62  8c 06 00 00 00 00 00 00  |..ananab........|\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000070  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  const uint64_t other_inner = example.Follow(top + 64 + 24);
  EXPECT_EQ(example.Dump(other_inner, 128),
            "00000000  00 00 00 00 00 00 00 00  63 68 69 6d 01 00 00 00  |........chim....|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 10 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  00 00 00 00 00 00 00 80  8a 06 00 00 00 00 00 00  |................|\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000070  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  const uint64_t left = example.Follow(inner + 64 + 8);
  EXPECT_EQ(example.Dump(left, 128),
            "00000000  00 00 00 00 01 00 00 00  63 68 69 6d 00 00 00 00  |........chim....|\n"
            "00000010  02 00 00 00 00 00 00 00  2e 2e 61 6e 61 6e 61 62  |..........ananab|\n"
            "00000020  00 00 00 00 00 00 08 00  8c 06 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  2e 2e 2e 65 6c 70 70 e1  72 65 64 2e 2e 2e 2e 2e  |...elpp.red.....|\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000070  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  const uint64_t right = example.Follow(inner + 64 + 24);
  EXPECT_EQ(example.Dump(right, 128),
            "00000000  00 00 00 00 00 00 00 00  63 68 69 6d 00 00 00 00  |........chim....|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 80  |................|\n"
            "00000020  00 00 00 00 00 00 08 00  8a 06 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  2e 2e 79 72 72 65 68 e3  64 61 72 6b 20 72 65 64  |..yrreh.dark red|\n"
            "00000050  2e 2e 61 6e 61 6e 61 e2  79 65 6c 6c 6f 77 2e 2e  |..anana.yellow..|\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000070  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  const uint64_t other = example.Follow(other_inner + 64 + 8);
  EXPECT_EQ(example.Dump(other, 128),
            "00000000  00 00 00 00 00 00 00 00  63 68 69 6d 00 00 00 00  |........chim....|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 10 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000050  2e 72 69 61 6c 63 a9 c3  62 72 6f 77 6e 2e 2e 2e  |.rialc..brown...|\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000070  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
}

TEST(ChimeLayout, GoldenBytesOfATableWithKeysOfAnySize) {
  // Given leaves of one entry. When two keys are put that differ behind their first 8 bytes. Expect exactly
  // these bytes.
  const Example example({{"span", "1"}, {"fanout", "2"}},
                        {{"strawberry", "red"}, {"strawberry jam", "sweet"}});
  const uint64_t inner = example.Follow(example.root);
  EXPECT_EQ(example.Dump(inner + 64, 64),
            "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000010  84 06 00 00 00 00 00 00  72 65 62 77 61 72 74 73  |........rebwarts|\n"
            "00000020  42 04 00 00 00 04 0f 00  86 06 00 00 00 00 00 00  |B...............|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  const uint64_t right = example.Follow(inner + 64 + 40);
  EXPECT_EQ(example.Dump(right, 96),
            "00000000  00 00 00 00 00 00 00 00  63 68 69 6d 00 00 00 00  |........chim....|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 10 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  72 65 62 77 61 72 74 73  42 05 00 00 00 04 52 f2  |rebwartsB.....R.|\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  EXPECT_EQ(example.Dump(example.Follow(right + 64 + 8), 64),
            "00000000  0e 00 00 00 05 00 00 00  7a eb 9d 6d d1 16 52 f2  |........z..m..R.|\n"
            "00000010  6d 87 63 91 38 c8 af 58  73 74 72 61 77 62 65 72  |m.c.8..Xstrawber|\n"
            "00000020  72 79 20 6a 61 6d 73 77  65 65 74 00 00 00 00 00  |ry jamsweet.....|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  EXPECT_EQ(example.Dump(example.Follow(inner + 64 + 32), 64),
            "00000000  0b 00 00 00 00 00 00 00  62 c4 ab d2 ba 5b 26 f2  |........b....[&.|\n"
            "00000010  32 82 87 3c 98 48 0d 1a  73 74 72 61 77 62 65 72  |2..<.H..strawber|\n"
            "00000020  72 79 20 00 00 00 00 00  00 00 00 00 00 00 00 00  |ry .............|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
}

}  // namespace
}  // namespace farside::index::chime
