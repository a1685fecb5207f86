#include "pool/region/superblock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "tests/pool/region/format_cuts.h"

namespace farside::pool {
namespace {

// The error of a superblock that `spoil` has changed, with a checksum that is right all the same.
template <class Spoil>
Error ErrorWhen(Spoil spoil) {
  Superblock superblock = FreshPool()->superblock();
  spoil(superblock);
  const auto bytes = std::as_bytes(std::span(&superblock, 1));
  superblock.checksum = Hash64(bytes.first(offsetof(Superblock, checksum)));
  const Result<Superblock> checked = CheckSuperblock(bytes, kBytes);
  EXPECT_FALSE(checked.ok());
  return checked.ok() ? Error(ErrorCode::kUnsupported, "it was accepted") : checked.error();
}

TEST(Superblock, OfAFreshPool_IsAccepted) {
  auto image = FreshPool();
  const Result<Superblock> superblock = image->Check();
  ASSERT_TRUE(superblock.ok()) << superblock.error().ToString();
  EXPECT_EQ(superblock->region_id, kId);
  const Geometry geometry = GeometryOf(*superblock);
  EXPECT_EQ(geometry.region_bytes, kBytes);
  EXPECT_EQ(geometry.client_slots, 64u);
  EXPECT_EQ(geometry.table_slots, 64u);
  EXPECT_EQ(geometry.chunk_bytes, 4096u);
  // A device may be larger than what was formatted.
  EXPECT_TRUE(CheckSuperblock(image->bytes().first(kLine), kBytes + 1).ok());
}

TEST(Superblock, OfAnythingElse_IsNoPool) {
  const auto error = [](std::string_view text, size_t size) {
    std::vector<std::byte> bytes(size);
    std::ranges::copy(AsBytes(text), bytes.begin());
    return CheckSuperblock(bytes, kBytes).error().ToString();
  };
  EXPECT_EQ(error("", 64), "kInvalidArgument: not a Farside pool");
  EXPECT_EQ(error("\x7f"
                  "ELF",
                  4096),
            "kInvalidArgument: not a Farside pool");
  EXPECT_EQ(error("", 0), "kInvalidArgument: not a Farside pool");
  EXPECT_EQ(error("FARSIDE", 8), "kInvalidArgument: not a Farside pool");
  EXPECT_EQ(error("FARSIDE", 63), "kInvalidArgument: not a Farside pool");
}

TEST(Superblock, OfAnotherVersion_NamesBoth) {
  EXPECT_EQ(ErrorWhen([](Superblock& s) { s.layout_version = 7; }).ToString(),
            "kVersionMismatch: the pool has layout version 7, this build reads version 2; export it with a "
            "build of its "
            "version and import it with this one");
}

TEST(Superblock, OfAnotherVersion_IsNotJudgedByThisOnesChecksum) {
  auto image = FreshPool();
  image->bytes()[8] = std::byte{1};
  EXPECT_EQ(image->Check().error().code(), ErrorCode::kVersionMismatch);
}

TEST(Superblock, OfTheOtherByteOrder_IsRefused) {
  constexpr std::string_view kExpected =
      "kVersionMismatch: the pool was made on a machine of the other byte order; export it there and import "
      "it here";
  EXPECT_EQ(ErrorWhen([](Superblock& s) { s.endian_mark = 0x04030201; }).ToString(), kExpected);
  EXPECT_EQ(ErrorWhen([](Superblock& s) {
              s.magic = __builtin_bswap64(kMagic);
              s.layout_version = __builtin_bswap32(kLayoutVersion);
            }).ToString(),
            kExpected);
}

TEST(Superblock, WithAnyBitOfItFlipped_IsRefused) {
  // Given a fresh pool.
  // When any one bit of the superblock is flipped.
  // Expect it to be refused, and the change to matter: no bit is spare.
  auto image = FreshPool();
  for (size_t byte = 0; byte < sizeof(Superblock); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      const std::byte flip{static_cast<uint8_t>(1 << bit)};
      image->bytes()[byte] ^= flip;
      const Result<Superblock> checked = image->Check();
      ASSERT_FALSE(checked.ok()) << "byte " << byte << " bit " << bit;
      const ErrorCode expected = byte < 8    ? ErrorCode::kInvalidArgument
                                 : byte < 12 ? ErrorCode::kVersionMismatch
                                             : ErrorCode::kCorrupt;
      EXPECT_EQ(checked.error().code(), expected) << "byte " << byte << " bit " << bit;
      image->bytes()[byte] ^= flip;
    }
  }
  EXPECT_TRUE(image->Check().ok());
}

TEST(Superblock, ThatIsDamaged_SaysSo) {
  auto image = FreshPool();
  image->bytes()[40] ^= std::byte{1};
  EXPECT_EQ(image->Check().error().ToString(),
            "kCorrupt: the superblock is damaged: its checksum is wrong; restore the pool from an export");
}

TEST(Superblock, OfALargerRegion_IsTruncated) {
  auto image = FreshPool();
  EXPECT_EQ(CheckSuperblock(image->bytes(), kBytes - 1).error().ToString(),
            "kCorrupt: truncated: the superblock says 65536 bytes, but there are 65535");
}

TEST(Superblock, OfARegionThatIsSaidToBeHuge_HasNoMoreTablesThanAPoolMayHave) {
  // Given a node that claims a region of a petabyte, and room for as many tables as can be said, with a right
  // checksum. Expect that it is refused: a client has memory for the whole catalog.
  Superblock superblock = FreshPool()->superblock();
  superblock.region_bytes = uint64_t{1} << 50;
  const auto check = [&superblock](uint32_t table_slots) {
    superblock.table_slots = table_slots;
    const auto bytes = std::as_bytes(std::span(&superblock, 1));
    superblock.checksum = Hash64(bytes.first(offsetof(Superblock, checksum)));
    return CheckSuperblock(bytes, superblock.region_bytes);
  };
  EXPECT_TRUE(check(131'072).ok());
  for (const uint32_t slots : {131'073u, ~0u}) {
    const Result<Superblock> checked = check(slots);
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(checked.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(Superblock, WithAbsurdNumbers_IsRefused) {
  // The checksum is right: a client wrote these numbers on purpose.
  const auto expect_corrupt = [](auto spoil) {
    const Error error = ErrorWhen(spoil);
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.ToString();
  };
  for (const uint32_t slots : {0u, kMaxClientSlots + 1, ~0u}) {
    expect_corrupt([slots](Superblock& s) { s.client_slots = slots; });
  }
  for (const uint32_t slots : {0u, 1'000'000u, ~0u}) {
    expect_corrupt([slots](Superblock& s) { s.table_slots = slots; });
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{2048}, uint64_t{4097}, uint64_t{1} << 20,
                               uint64_t{1} << 63, ~uint64_t{0}}) {
    expect_corrupt([bytes](Superblock& s) { s.chunk_bytes = bytes; });
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, kBytes - 64, kBytes + 4096, ~uint64_t{0}}) {
    expect_corrupt([bytes](Superblock& s) { s.region_bytes = bytes; });
  }
  expect_corrupt([](Superblock& s) { s.endian_mark = 0; });
  EXPECT_EQ(ErrorWhen([](Superblock& s) { s.client_slots = 0; }).message(),
            "the superblock is damaged: it speaks of 0 client slots; restore the pool from an export");
}

TEST(Superblock, OfRandomBytes_NeverCrashes) {
  Random random(0xbad);
  const Superblock fresh = FreshPool()->superblock();
  for (int i = 0; i < 20'000; ++i) {
    Superblock superblock = fresh;
    auto bytes = std::as_writable_bytes(std::span(&superblock, 1));
    for (uint64_t changes = random.LogUniform(64); changes > 0; --changes) {
      bytes[12 + random.Below(52)] = static_cast<std::byte>(random.Next());
    }
    superblock.checksum = Hash64(bytes.first(offsetof(Superblock, checksum)));
    const Result<Superblock> checked = CheckSuperblock(bytes, random.LogUniform(~uint64_t{0}));
    if (!checked.ok()) continue;
    const Geometry geometry = GeometryOf(*checked);
    EXPECT_LE(geometry.chunk(geometry.chunks() - 1) + geometry.chunk_bytes, geometry.region_bytes);
  }
}

// ---- power cuts ------------------------------------------------------------------------------------------

TEST(Format, OfZeroedMemory_SurvivesAPowerCutAtAnyMoment) {
  EXPECT_EQ(FormatUnderPowerCuts(Image{}, false), "");
}

TEST(Format, OverRubbish_SurvivesAPowerCutAtAnyMoment) {
  Image rubbish;
  Random random(1);
  for (uint64_t& word : rubbish.words) word = random.Next();
  EXPECT_EQ(FormatUnderPowerCuts(rubbish, false), "");
}

TEST(Format, OverAnOldPool_SurvivesAPowerCutAtAnyMoment) {
  EXPECT_EQ(FormatUnderPowerCuts(UsedPool(), true), "");
}

TEST(Format, OverItself_SurvivesAPowerCutAtAnyMoment) {
  // The superblock is the same before and after, but the tables are not: only its magic tells.
  Image old = *FreshPool(kId);
  for (size_t word = kLine / 8; word < kWords; ++word) old.words[word] = ~uint64_t{0};
  const Geometry geometry = SomeGeometry();
  const auto judge = [&](Image& durable, int) {
    if (!durable.Check().ok() || durable == old) return;
    const auto rest = durable.bytes().subspan(kLine, geometry.first_chunk() - kLine);
    EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; }));
  };
  PowerCuts memory(old, judge);
  const auto persist = [&memory](uint64_t offset, uint64_t size) { return memory.Persist(offset, size); };
  ASSERT_TRUE(Format(memory.bytes(), persist, geometry, kId).ok());
}

TEST(Format, LeavesTheChunksAlone) {
  // No client may rely on what a chunk holds, so zeroing terabytes would be for nothing.
  Image image;
  image.words.fill(~uint64_t{0});
  const Geometry geometry = SomeGeometry();
  ASSERT_TRUE(Format(image.bytes(), NothingToPersist, geometry, kId).ok());
  EXPECT_EQ(image.words[geometry.first_chunk() / 8 - 1], 0u);
  EXPECT_EQ(image.words[geometry.first_chunk() / 8], ~uint64_t{0});
}

TEST(Format, WhenMemoryCannotBePersisted_Fails) {
  for (int good_steps = 0; good_steps < 4; ++good_steps) {
    Image image{};
    int steps = 0;
    const Status formatted = Format(
        image.bytes(),
        [&](uint64_t, uint64_t) -> Status {
          if (steps++ == good_steps) return Error(ErrorCode::kUnavailable, "the disk is on fire");
          return OkStatus();
        },
        SomeGeometry(), kId);
    ASSERT_FALSE(formatted.ok());
    EXPECT_EQ(formatted.error().message(), "the disk is on fire");
    EXPECT_EQ(steps, good_steps + 1);
  }
}

// ---- through a fabric
// --------------------------------------------------------------------------------------

class SuperblockOfANode : public ::testing::Test {
 protected:
  SuperblockOfANode() : world_(Options()), client_(std::move(*world_.Connect())) {}

  static fabric::sim::SimOptions Options() {
    fabric::sim::SimOptions options;
    options.region_bytes = {kBytes, kBytes};
    return options;
  }
  std::span<std::byte> memory() { return world_.memory(fabric::NodeId{1}); }
  Result<Geometry> Read() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    Result<Geometry> geometry = fabric::Run(*client_, ReadGeometry(op, fabric::NodeId{1}));
    trips_ = op.tally().maintenance_trips;
    return geometry;
  }

  fabric::sim::SimFabric world_;
  std::unique_ptr<fabric::Client> client_;
  uint64_t trips_ = 0;
};

TEST_F(SuperblockOfANode, IsReadInOneTrip) {
  std::ranges::copy(FreshPool()->bytes(), memory().begin());
  const Result<Geometry> geometry = Read();
  ASSERT_TRUE(geometry.ok()) << geometry.error().ToString();
  EXPECT_EQ(geometry->chunks(), SomeGeometry().chunks());
  EXPECT_EQ(trips_, 1u);
}

TEST_F(SuperblockOfANode, ThatIsNoPool_NamesTheNode) {
  EXPECT_EQ(Read().error().ToString(), "kInvalidArgument: node 1: not a Farside pool");
}

TEST_F(SuperblockOfANode, OfALargerRegion_IsTruncated) {
  alignas(kPage) static std::array<std::byte, 2 * kBytes> larger{};
  ASSERT_TRUE(Format(larger, NothingToPersist, *PlanGeometry(larger.size(), {}), kId).ok());
  std::ranges::copy(std::span(larger).first(kBytes), memory().begin());
  EXPECT_EQ(Read().error().ToString(),
            "kCorrupt: node 1: truncated: the superblock says 131072 bytes, but there are 65536");
}

}  // namespace
}  // namespace farside::pool
