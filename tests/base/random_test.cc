#include "base/random.h"

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace farside {
namespace {

constexpr uint64_t kMaxWord = std::numeric_limits<uint64_t>::max();

// The published algorithm, written down a second time and checked below against the outputs that are in
// general circulation, so that Random is compared with something that does not share its mistakes.
struct ReferenceXoshiro {
  uint64_t s[4];

  static uint64_t Rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  uint64_t Next() {
    const uint64_t result = Rotate(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = Rotate(s[3], 45);
    return result;
  }
};

// Given the seed whose outputs are published. Expect those outputs.
TEST(SplitMix64, MatchesThePublishedOutputs) {
  uint64_t state = 1234567;
  EXPECT_EQ(SplitMix64(state), 6457827717110365317u);
  EXPECT_EQ(SplitMix64(state), 3203168211198807973u);
  EXPECT_EQ(SplitMix64(state), 9817491932198370423u);
  EXPECT_EQ(SplitMix64(state), 4593380528125082431u);
  EXPECT_EQ(SplitMix64(state), 16408922859458223821u);
}

// Given the state {1, 2, 3, 4}, which other implementations of xoshiro256** test with. Expect the outputs
// that they expect.
TEST(ReferenceXoshiro, MatchesThePublishedOutputs) {
  ReferenceXoshiro reference{{1, 2, 3, 4}};
  const uint64_t expected[] = {11520u,
                               0u,
                               1509978240u,
                               1215971899390074240u,
                               1216172134540287360u,
                               607988272756665600u,
                               16172922978634559625u,
                               8476171486693032832u,
                               10595114339597558777u,
                               2904607092377533576u};
  for (const uint64_t value : expected) EXPECT_EQ(reference.Next(), value);
}

// Given the state that splitmix64 makes of a seed. When both generators run. Expect the same words.
TEST(Random, FollowsTheReferenceFromASplitMixState) {
  // The first four words are the published splitmix64 outputs of this seed.
  ReferenceXoshiro reference{
      {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u}};
  Random random(1234567);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(random.Next(), reference.Next()) << "word " << i;
}

// Given fixed seeds. Expect the words, draws and streams that they gave when this was written: recorded
// seeds in failure reports depend on them.
TEST(Random, SeedsKeepTheirNumbers) {
  Random random(42);
  EXPECT_EQ(random.Next(), 1546998764402558742u);
  EXPECT_EQ(random.Next(), 6990951692964543102u);
  EXPECT_EQ(random.Next(), 12544586762248559009u);
  EXPECT_EQ(random.Below(6), 5u);
  EXPECT_EQ(random.Below(1000), 991u);
  EXPECT_EQ(random.Below(3 * (uint64_t{1} << 62)), 9950984181700650565u);
  EXPECT_EQ(random.Between(100, 200), 185u);
  EXPECT_EQ(random.LogUniform(1'000'000'000), 6641048u);
  EXPECT_EQ(random.LogUniform(1'000'000'000), 1353373u);
  EXPECT_EQ(random.LogUniform(1'000'000'000), 11084804u);
  EXPECT_EQ(random.Fork(0).seed(), 454985592330159504u);
  EXPECT_EQ(random.Fork(1).seed(), 13536171761747293114u);
  EXPECT_EQ(random.Fork(1).Next(), 3461141351281671046u);
  EXPECT_EQ(random.Next(), 13118401031821625293u);
  EXPECT_EQ(Random(0).Next(), 11091344671253066420u);
}

// Given a generator that is evaluated by the compiler. Expect what it gives at run time.
TEST(Random, IsTheSameAtCompileTime) {
  constexpr uint64_t at_compile_time = Random(99).Fork(3).Below(1'000'000);
  volatile uint64_t seed = 99;
  EXPECT_EQ(Random(seed).Fork(3).Below(1'000'000), at_compile_time);
}

// Given a die. When it is thrown often. Expect every face about equally often: 5 standard deviations.
TEST(Random, BelowIsUniform) {
  Random random(1);
  std::array<int, 6> faces{};
  for (int i = 0; i < 60'000; ++i) {
    const uint64_t face = random.Below(6);
    ASSERT_LT(face, faces.size());
    ++faces[face];
  }
  for (const int count : faces) EXPECT_NEAR(count, 10'000, 460);
}

// Given n = 3/4 * 2^64, where plain multiply-shift would give every third value twice the weight of the
// others. Expect the three residues in equal shares, which needs the rejection.
TEST(Random, BelowIsUnbiasedForHugeN) {
  Random random(2);
  const uint64_t n = 3 * (uint64_t{1} << 62);
  std::array<int, 3> residues{};
  for (int i = 0; i < 30'000; ++i) {
    const uint64_t value = random.Below(n);
    ASSERT_LT(value, n);
    ++residues[value % 3];
  }
  for (const int count : residues) EXPECT_NEAR(count, 10'000, 410);
}

// Given the smallest and the largest n. Expect values below it.
TEST(Random, BelowAtTheEdges) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(random.Below(1), 0u);
    EXPECT_LT(random.Below(kMaxWord), kMaxWord);
  }
}

// Given small and extreme intervals. Expect both ends to be reached and nothing outside.
TEST(Random, BetweenIncludesBothEnds) {
  Random random(4);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Between(10, 13));
  EXPECT_EQ(seen, (std::set<uint64_t>{10, 11, 12, 13}));

  EXPECT_EQ(random.Between(kMaxWord, kMaxWord), kMaxWord);
  seen.clear();
  for (int i = 0; i < 100; ++i) seen.insert(random.Between(kMaxWord - 1, kMaxWord));
  EXPECT_EQ(seen, (std::set<uint64_t>{kMaxWord - 1, kMaxWord}));
}

// Given the interval of all words. Expect the plain generator, not a division by an overflown length.
TEST(Random, BetweenAllWordsIsNext) {
  Random random(5);
  Random plain(5);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.Between(0, kMaxWord), plain.Next());
}

// Given probabilities 0, 1/4, 1 and above. Expect never, about a quarter, always, always.
TEST(Random, ChanceFollowsItsFraction) {
  Random random(6);
  int quarter = 0;
  for (int i = 0; i < 40'000; ++i) {
    EXPECT_FALSE(random.Chance(0, 4));
    EXPECT_TRUE(random.Chance(4, 4));
    EXPECT_TRUE(random.Chance(5, 4));
    if (random.Chance(1, 4)) ++quarter;
  }
  EXPECT_NEAR(quarter, 10'000, 435);
}

// Given two runs that differ in a fault rate, which is 0 in one. Expect the numbers after it to agree.
TEST(Random, ChanceDrawsEvenWhenTheAnswerIsCertain) {
  Random off(7);
  Random on(7);
  off.Chance(0, 1000);
  on.Chance(500, 1000);
  EXPECT_EQ(off.Next(), on.Next());
}

// Given max = 1000, which has 10 bits. Expect the lengths 0 .. 10 equally often, and nothing above max.
TEST(Random, LogUniformGivesEveryLengthItsShare) {
  Random random(8);
  std::map<uint64_t, int> lengths;
  for (int i = 0; i < 110'000; ++i) {
    const uint64_t value = random.LogUniform(1000);
    ASSERT_LE(value, 1000u);
    ++lengths[static_cast<uint64_t>(std::bit_width(value))];
  }
  EXPECT_EQ(lengths.size(), 11u);
  for (const auto& [length, count] : lengths) EXPECT_NEAR(count, 10'000, 480) << "length " << length;
}

// Given small and extreme bounds. Expect values within them, with both ends reached where that is likely.
TEST(Random, LogUniformAtTheEdges) {
  Random random(9);
  std::set<uint64_t> up_to_two;
  int longest = 0;
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(random.LogUniform(0), 0u);
    EXPECT_LE(random.LogUniform(1), 1u);
    up_to_two.insert(random.LogUniform(2));
    if (random.LogUniform(kMaxWord) > kMaxWord / 2) ++longest;
  }
  EXPECT_EQ(up_to_two, (std::set<uint64_t>{0, 1, 2}));
  EXPECT_GT(longest, 0);
}

// Given a generator that has drawn and one that has not. When both fork. Expect equal streams, and that
// forking drew nothing.
TEST(Random, ForkDependsOnTheSeedAlone) {
  Random fresh(10);
  Random used(10);
  used.Next();
  const Random before = used;
  EXPECT_EQ(fresh.Fork(3).Next(), used.Fork(3).Next());
  EXPECT_EQ(used.Next(), Random(before).Next());
}

// Given small seeds and stream numbers, as tests use them, and forks of forks. Expect no two streams alike,
// nor any that repeats its parent.
TEST(Random, ForksDiffer) {
  std::set<uint64_t> firsts;
  int made = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    firsts.insert(Random(seed).Next());
    ++made;
    for (uint64_t stream = 0; stream < 100; ++stream) {
      firsts.insert(Random(seed).Fork(stream).Next());
      ++made;
    }
  }
  for (uint64_t outer = 0; outer < 10; ++outer) {
    for (uint64_t inner = 0; inner < 10; ++inner) {
      firsts.insert(Random(1000).Fork(outer).Fork(inner).Next());
      ++made;
    }
  }
  EXPECT_EQ(firsts.size(), static_cast<size_t>(made));
}

// Given a fork. When only its seed is known. Expect the same stream from that seed: it can be reported.
TEST(Random, AForkIsReplayableFromItsSeed) {
  Random fork = Random(11).Fork(5);
  Random replay(fork.seed());
  EXPECT_EQ(fork.Next(), replay.Next());
}

}  // namespace
}  // namespace farside
