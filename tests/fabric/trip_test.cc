#include "fabric/trip.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace farside::fabric {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

FarAddr At(uint64_t offset, uint16_t node = 0) { return FarAddr(static_cast<NodeId>(node), offset); }
Verb ReadOf(FarAddr at, uint64_t size) {
  Verb verb;
  verb.at = at;
  verb.size = size;
  return verb;
}
Verb WriteOf(FarAddr at, uint64_t size) {
  Verb verb = ReadOf(at, size);
  verb.kind = VerbKind::kWrite;
  return verb;
}
Verb CasAt(FarAddr at) { return Cas(at, 0, 1).verb; }
Verb FencedOf(Verb verb) {
  verb.fenced = true;
  return verb;
}

void ExpectCost(const std::vector<Verb>& verbs, uint64_t trips, uint64_t depth) {
  const TripCost cost = CostOf(verbs);
  EXPECT_EQ(cost.trips, trips);
  EXPECT_EQ(cost.depth, depth);
}

// ---- what a trip is counted as

// Given verbs to one node without fences. Expect one trip, and none for no verbs at all.
TEST(CostOf, VerbsToOneNode_AreOneTrip) {
  ExpectCost({}, 0, 0);
  ExpectCost({CasAt(At(0))}, 1, 1);
  ExpectCost({CasAt(At(0)), ReadOf(At(64), 64), WriteOf(At(128), 64)}, 1, 1);
  ExpectCost({FenceVerb(NodeId{0}, ClientId{1}).verb}, 1, 1);
}

// Given more READs and atomics than a device answers at once. Expect a further round trip per 16.
TEST(CostOf, EverySixteenAnsweredVerbs_AreOneTrip) {
  for (size_t count = 1; count <= kMaxVerbsPerTrip; ++count) {
    std::vector<Verb> verbs;
    for (size_t i = 0; i < count; ++i)
      verbs.push_back(i % 2 == 0 ? ReadOf(At(64 * i), 64) : CasAt(At(64 * i)));
    const uint64_t trips = (count + 15) / 16;
    ExpectCost(verbs, trips, trips);
  }
}

// Given many WRITEs, which are not answered with data. Expect one trip however many they are, also between
// sixteen READs.
TEST(CostOf, Writes_DoNotCountTowardsTheSixteen) {
  std::vector<Verb> verbs(40, WriteOf(At(0), 64));
  ExpectCost(verbs, 1, 1);
  verbs.insert(verbs.end(), 16, ReadOf(At(0), 64));
  verbs.push_back(WriteOf(At(0), 64));
  ExpectCost(verbs, 1, 1);
  verbs.push_back(ReadOf(At(0), 64));
  ExpectCost(verbs, 2, 2);
}

// Given fenced verbs. Expect a round trip for each, but none for a fence on the first verb, which waits for
// nothing. After a fence the sixteen are counted anew.
TEST(CostOf, Fences_AreTripsUnlessTheyWaitForNothing) {
  const Verb read = ReadOf(At(0), 64);
  ExpectCost({FencedOf(read)}, 1, 1);
  ExpectCost({FencedOf(read), read}, 1, 1);
  ExpectCost({read, FencedOf(read)}, 2, 2);
  ExpectCost({read, FencedOf(CasAt(At(0))), FencedOf(WriteOf(At(0), 8))}, 3, 3);

  std::vector<Verb> verbs(15, read);
  verbs.push_back(FencedOf(read));
  verbs.insert(verbs.end(), 15, read);
  ExpectCost(verbs, 2, 2);
  verbs.push_back(read);
  ExpectCost(verbs, 3, 3);
}

// Given verbs to several nodes at once, in any order. Expect a trip per node, but only the longest in depth.
TEST(CostOf, SeveralNodes_AreTripsSideBySide) {
  ExpectCost({ReadOf(At(0, 0), 64), ReadOf(At(0, 1), 64), ReadOf(At(0, 2), 64)}, 3, 1);
  ExpectCost({ReadOf(At(0, 0), 64), ReadOf(At(0, 1), 64), ReadOf(At(64, 0), 64)}, 2, 1);
  // A fence waits for its own node only; the first verb of node 1 has nothing to wait for.
  ExpectCost({ReadOf(At(0, 0), 64), FencedOf(ReadOf(At(0, 1), 64))}, 2, 1);
  ExpectCost({ReadOf(At(0, 0), 64), FencedOf(ReadOf(At(0, 0), 64)), ReadOf(At(0, 1), 64)}, 3, 2);

  std::vector<Verb> verbs(17, ReadOf(At(0, 0), 64));
  verbs.insert(verbs.end(), 16, ReadOf(At(0, 1), 64));
  ExpectCost(verbs, 3, 2);
}

// ---- bounds

constexpr std::array<uint64_t, 2> kRegions = {1024, 64};

bool Passes(const Verb& verb) { return !CheckBounds({&verb, 1}, kRegions).has_value(); }

// Given accesses that end exactly at the end of their region. Expect no complaint.
TEST(CheckBounds, AccessesUpToTheLastByte_Pass) {
  EXPECT_TRUE(Passes(ReadOf(At(0), 1024)));
  EXPECT_TRUE(Passes(ReadOf(At(1023), 1)));
  EXPECT_TRUE(Passes(ReadOf(At(1024), 0)));
  EXPECT_TRUE(Passes(WriteOf(At(1, 1), 63)));
  EXPECT_TRUE(Passes(CasAt(At(1016))));
  EXPECT_TRUE(Passes(Faa(At(56, 1), 1).verb));
}

// Given accesses that leave their region, also by so much that offset plus size wraps around. Expect
// kCorrupt, with the numbers in the message.
TEST(CheckBounds, AccessesBeyondTheRegion_AreCorrupt) {
  for (const Verb& verb :
       {ReadOf(At(1), 1024), ReadOf(At(1024), 1), ReadOf(At(1025), 0), ReadOf(At(0, 1), 65),
        WriteOf(At(960), 65), CasAt(At(1024)), Faa(At(64, 1), 1).verb, ReadOf(At(kMax), 1),
        ReadOf(At(kMax), kMax), ReadOf(At(1), kMax), ReadOf(At(kMax - 62), 64), WriteOf(At(kMax - 6), 7),
        WriteOf(At(0), kMax), CasAt(At(kMax - 7)), ReadOf(At(uint64_t{1} << 63), uint64_t{1} << 63)}) {
    const std::optional<Error> error = CheckBounds({&verb, 1}, kRegions);
    ASSERT_TRUE(error.has_value()) << verb.at.offset << "+" << verb.size;
    EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
    EXPECT_NE(error->message().find("leaves the region"), std::string::npos) << error->message();
  }
}

// Given atomics at offsets that are not multiples of 8. Expect kCorrupt; READs and WRITEs may lie anywhere.
TEST(CheckBounds, UnalignedAtomics_AreCorrupt) {
  for (uint64_t offset = 1; offset < 8; ++offset) {
    for (const Verb& verb :
         {CasAt(At(offset)), Faa(At(512 + offset), 1).verb, MaskedCas(At(offset), 0, 0, 0, 0, 0).verb}) {
      const std::optional<Error> error = CheckBounds({&verb, 1}, kRegions);
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
    }
    EXPECT_TRUE(Passes(ReadOf(At(offset), 8)));
    EXPECT_TRUE(Passes(WriteOf(At(offset), 8)));
  }
}

// Given verbs of every kind to a node that does not exist. Expect kCorrupt, for Calls and fences too.
TEST(CheckBounds, UnknownNodes_AreCorrupt) {
  for (const uint16_t node : {uint16_t{2}, uint16_t{65535}}) {
    for (const Verb& verb : {ReadOf(At(0, node), 8), WriteOf(At(0, node), 8), CasAt(At(0, node)),
                             CallVerb(static_cast<NodeId>(node), CallId(1, 1), "x").verb,
                             FenceVerb(static_cast<NodeId>(node), ClientId{1}).verb}) {
      const std::optional<Error> error = CheckBounds({&verb, 1}, kRegions);
      ASSERT_TRUE(error.has_value()) << Name(verb.kind);
      EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
    }
  }
}

// Given a long request to a small node. Expect no complaint: a Call reaches no memory by itself.
TEST(CheckBounds, SizesOfCalls_AreNotOffsets) {
  const std::string request(4096, 'x');
  EXPECT_TRUE(Passes(CallVerb(NodeId{1}, CallId(1, 1), request).verb));
}

// Given a trip whose last verb alone is bad. Expect that it is found.
TEST(CheckBounds, OneBadVerb_SpoilsTheTrip) {
  const std::vector<Verb> verbs = {ReadOf(At(0), 8), WriteOf(At(8), 8), ReadOf(At(1020), 8)};
  EXPECT_TRUE(CheckBounds(verbs, kRegions).has_value());
  EXPECT_FALSE(CheckBounds(std::span(verbs).first(2), kRegions).has_value());
}

// ---- lost completions

// Given trips whose completion was lost. Expect an unknown outcome if a verb could have changed anything, and
// otherwise an error that allows a retry.
TEST(LostCompletion, IsUnknownOnlyIfSomethingCouldHaveChanged) {
  const std::vector<Verb> reads = {ReadOf(At(0), 8), ReadOf(At(8), 8)};
  EXPECT_EQ(LostCompletion(reads, "gone").code(), ErrorCode::kUnavailable);
  for (const Verb& verb :
       {WriteOf(At(0), 8), CasAt(At(0)), Faa(At(0), 1).verb, CallVerb(NodeId{0}, CallId(1, 1), "").verb}) {
    const std::vector<Verb> verbs = {ReadOf(At(0), 8), verb};
    EXPECT_EQ(LostCompletion(verbs, "gone").code(), ErrorCode::kOutcomeUnknown) << Name(verb.kind);
  }
}

}  // namespace
}  // namespace farside::fabric
