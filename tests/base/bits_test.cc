#include "base/bits.h"

#include <cstdint>
#include <type_traits>

#include <gtest/gtest.h>

namespace farside {
namespace {

using Owner = Field<0, 16>;
using Unused = Field<16, 16>;
using Generation = Field<32, 32>;
using Whole = Field<0, 64>;
using TopBit = Field<63, 1>;

static_assert(Owner::kMax == 0xffff && Owner::kMask == 0xffff);
static_assert(Generation::kMax == 0xffffffff && Generation::kMask == 0xffffffff00000000);
static_assert(TopBit::kMax == 1 && TopBit::kMask == 0x8000000000000000);
static_assert(Whole::kMax == ~uint64_t{0} && Whole::kMask == ~uint64_t{0});

static_assert(Generation::Get(0x0123456789abcdef) == 0x01234567);
static_assert(Owner::Get(0x0123456789abcdef) == 0xcdef);
static_assert(Unused::Set(0x0123456789abcdef, 0) == 0x012345670000cdef);
static_assert(Unused::Set(0, 0xffff) == 0xffff0000);
static_assert(Whole::Set(5, ~uint64_t{0}) == ~uint64_t{0});
static_assert(TopBit::Get(TopBit::Set(0, 1)) == 1);

static_assert(TilesWord<Owner, Unused, Generation>());
static_assert(TilesWord<Generation, Owner, Unused>(), "the order does not matter");
static_assert(TilesWord<Whole>());
static_assert(TilesWord<Field<0, 63>, TopBit>());
static_assert(!TilesWord<>(), "nothing covers nothing");
static_assert(!TilesWord<Owner, Generation>(), "a gap in the middle");
static_assert(!TilesWord<Unused, Generation>(), "a gap at the bottom");
static_assert(!TilesWord<Field<0, 63>>(), "a gap at the top");
static_assert(!TilesWord<Owner, Owner, Unused, Generation>(), "a field named twice");
static_assert(!TilesWord<Field<0, 33>, Generation>(), "one bit of overlap");
static_assert(!TilesWord<Field<0, 33>, Field<33, 30>, Field<32, 1>>(),
              "64 bits in all, yet one twice and one never");

// Whether Set(0, kValue) is a constant expression, which a failing assert prevents.
template <class F, uint64_t kValue>
concept Settable = requires {
  typename std::integral_constant<uint64_t, F::Set(0, kValue)>;
};

static_assert(Settable<Owner, 0xffff>);
#ifndef NDEBUG
static_assert(!Settable<Owner, 0x10000>, "a value that does not fit does not compile in a constant");
static_assert(!Settable<TopBit, 2>);
#endif

// Given words of all zeros, all ones and a pattern. When each bit position is set and cleared as a field
// of its own. Expect that bit to change, and no other.
template <int kBit>
void ExpectOneBitChanges(uint64_t word) {
  using Bit = Field<kBit, 1>;
  const uint64_t mask = uint64_t{1} << kBit;
  EXPECT_EQ(Bit::Set(word, 1), word | mask);
  EXPECT_EQ(Bit::Set(word, 0), word & ~mask);
  EXPECT_EQ(Bit::Get(word), (word & mask) != 0 ? 1u : 0u);
  if constexpr (kBit > 0) ExpectOneBitChanges<kBit - 1>(word);
}

TEST(Bits, SingleBitFieldChangesOnlyItsBit) {
  ExpectOneBitChanges<63>(0);
  ExpectOneBitChanges<63>(~uint64_t{0});
  ExpectOneBitChanges<63>(0x0123456789abcdef);
}

// Given a word of three fields. When one is set. Expect it to read back and the others to be kept.
TEST(Bits, SetKeepsTheOtherFields) {
  const uint64_t before = 0xaaaaaaaa5555cccc;
  const uint64_t after = Unused::Set(before, 0x1234);
  EXPECT_EQ(Unused::Get(after), 0x1234u);
  EXPECT_EQ(Owner::Get(after), Owner::Get(before));
  EXPECT_EQ(Generation::Get(after), Generation::Get(before));
}

#ifndef NDEBUG
// Given a 16-bit field. When a 17-bit value is set at run time. Expect an assertion, not a changed
// neighbour.
TEST(BitsDeathTest, ValueThatDoesNotFitAsserts) {
  volatile uint64_t too_large = 0x10000;
  EXPECT_DEATH(static_cast<void>(Owner::Set(0, too_large)), "value <= kMax");
}
#endif

}  // namespace
}  // namespace farside
