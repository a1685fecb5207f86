// Where an address lies in a region.
#include "pool/memory/carving.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "pool/region/layout.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;

TEST(Carving, ANodeThatWasNeverReached_HasNoChunks) {
  // Given a node of which nothing is known, not even how large its chunks are. When a place is looked for.
  // Expect that there is none.
  const Carving carving(NodeId{1},
                        Geometry{.region_bytes = 0, .client_slots = 0, .table_slots = 0, .chunk_bytes = 0});
  EXPECT_EQ(carving.chunks(), 0u);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{64}, uint64_t{1} << 20}) {
    EXPECT_FALSE(carving.ChunkOf(FarAddr(NodeId{1}, offset)).has_value());
    EXPECT_FALSE(carving.Locate(FarAddr(NodeId{1}, offset), 64).has_value());
  }
}

TEST(Carving, AnAddress_LiesInItsChunk) {
  // Given a region of many chunks. Expect that each address lies in the chunk that it is in, and those before
  // the first chunk, behind the last one, and of other nodes in none.
  const Geometry geometry{.region_bytes = 1 << 20, .client_slots = 8, .table_slots = 4, .chunk_bytes = 4096};
  const Carving carving(NodeId{0}, geometry);
  const uint64_t chunks = carving.chunks();
  ASSERT_GT(chunks, 1u);
  EXPECT_EQ(carving.ChunkOf(carving.ChunkAt(0)), std::optional<uint32_t>(0));
  EXPECT_EQ(carving.ChunkOf(carving.ChunkAt(1) + 4095), std::optional<uint32_t>(1));
  EXPECT_FALSE(carving.ChunkOf(carving.ChunkAt(chunks)).has_value());
  EXPECT_FALSE(carving.ChunkOf(FarAddr(NodeId{0}, geometry.first_chunk() - 1)).has_value());
  EXPECT_FALSE(carving.ChunkOf(FarAddr(NodeId{1}, carving.ChunkAt(1).offset)).has_value());
}

}  // namespace
}  // namespace farside::pool
