#include "fabric/memory/line_memory.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "fabric/memory/region.h"

namespace farside::fabric::memory {
namespace {

using Bytes = std::vector<std::byte>;

FarAddr At(uint64_t offset) { return FarAddr(NodeId{0}, offset); }

// A region with its sequences, and a byte array that says what the region should hold.
class LineMemoryTest : public testing::Test {
 protected:
  static constexpr uint64_t kRegionBytes = 512 * 1024;  // twice around the table of sequences

  LineMemoryTest()
      : region_(std::move(*Region::Anonymous(kRegionBytes))),
        stripes_(std::make_unique<StripeTable>()),
        memory_(region_.bytes(), *stripes_),
        model_(kRegionBytes) {}

  Bytes RandomBytes(size_t size) {
    Bytes bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_.Next());
    return bytes;
  }
  void FillRegion() {
    const Bytes bytes = RandomBytes(kRegionBytes);
    memory_.WriteUnreachable(0, bytes);
    model_ = bytes;
  }
  // Reads between guard bytes, so that a copy that goes too far is noticed.
  void ExpectReadsAsModel(uint64_t offset, size_t size) {
    constexpr size_t kGuard = 16;
    constexpr std::byte kUntouched{0xa5};
    Bytes read(size + 2 * kGuard, kUntouched);
    memory_.Read(offset, std::span(read).subspan(kGuard, size));
    ASSERT_TRUE(std::equal(read.begin() + kGuard, read.end() - kGuard,
                           model_.begin() + static_cast<ptrdiff_t>(offset)))
        << "READ of " << size << " at " << offset;
    ASSERT_EQ(std::count(read.begin(), read.begin() + kGuard, kUntouched), kGuard);
    ASSERT_EQ(std::count(read.end() - kGuard, read.end(), kUntouched), kGuard);
  }
  void WriteBoth(uint64_t offset, const Bytes& bytes, bool unreachable) {
    if (unreachable) {
      memory_.WriteUnreachable(offset, bytes);
    } else {
      memory_.Write(offset, bytes);
    }
    std::copy(bytes.begin(), bytes.end(), model_.begin() + static_cast<ptrdiff_t>(offset));
  }
  uint64_t SequenceOf(uint64_t offset) const {
    return stripes_->sequences[offset / kLineBytes % StripeTable::kStripes].load();
  }
  uint64_t SumOfSequences() const {
    uint64_t sum = 0;
    for (const Sequence& sequence : stripes_->sequences) sum += sequence.load();
    return sum;
  }

  Random random_{1};
  Region region_;
  std::unique_ptr<StripeTable> stripes_;
  LineMemory memory_;
  Bytes model_;
};

// Given a fresh region. Expect zeroes everywhere, and untouched sequences.
TEST_F(LineMemoryTest, StartsAsZeroes) {
  ExpectReadsAsModel(0, kRegionBytes);
  EXPECT_EQ(SumOfSequences(), 0u);
  EXPECT_EQ(memory_.bytes(), kRegionBytes);
}

// Given three lines. When they are written at every offset with every size, with and without locks. Expect
// exactly those bytes to change, and every READ of the same place to return them.
TEST_F(LineMemoryTest, EveryOffsetAndSizeInThreeLines_WritesExactlyItsBytes) {
  constexpr uint64_t kBytes = 3 * kLineBytes;
  for (const bool unreachable : {false, true}) {
    for (uint64_t offset = 0; offset < kBytes; ++offset) {
      for (uint64_t size = 0; size <= kBytes - offset; ++size) {
        WriteBoth(offset, RandomBytes(size), unreachable);
        ASSERT_NO_FATAL_FAILURE(ExpectReadsAsModel(0, kBytes))
            << "after WRITE of " << size << " at " << offset;
        ASSERT_NO_FATAL_FAILURE(ExpectReadsAsModel(offset, size));
      }
    }
  }
}

// Given a filled region. When it is read with sizes around a line, a window, a page and more, at offsets
// around their boundaries and around the end of the table of sequences. Expect its bytes.
TEST_F(LineMemoryTest, LongReads_AcrossLinesWindowsAndPages_ReturnTheBytes) {
  FillRegion();
  const uint64_t wrap = StripeTable::kStripes * kLineBytes;
  for (const uint64_t base :
       {uint64_t{0}, uint64_t{1024}, kPageBytes, wrap - kLineBytes, wrap - 1024, wrap}) {
    for (const uint64_t skip : {0, 1, 7, 8, 9, 56, 63}) {
      for (const size_t size : {1,    8,    63,   64,   65,   512,  1000, 1023, 1024,   1025,   1087,
                                1088, 1089, 2047, 2048, 2049, 4095, 4096, 4097, 10'000, 100'000}) {
        ASSERT_NO_FATAL_FAILURE(ExpectReadsAsModel(base + skip, size));
      }
    }
  }
  ExpectReadsAsModel(kRegionBytes - 1, 1);
  ExpectReadsAsModel(kRegionBytes, 0);
}

// Given a long WRITE at odd offsets. Expect all its bytes and no others.
TEST_F(LineMemoryTest, LongWrites_ChangeExactlyTheirBytes) {
  FillRegion();
  for (const bool unreachable : {false, true}) {
    WriteBoth(3, RandomBytes(5000), unreachable);
    WriteBoth(StripeTable::kStripes * kLineBytes - 77, RandomBytes(333), unreachable);
    WriteBoth(kRegionBytes - 129, RandomBytes(129), unreachable);
    WriteBoth(kRegionBytes, {}, unreachable);
  }
  ExpectReadsAsModel(0, kRegionBytes);
}

// Given WRITEs, atomics and READs. Expect that each changed line moves its sequence by one change, and that
// READs, failed CAS and WRITEs to unreachable bytes move none: others need not copy again.
TEST_F(LineMemoryTest, OnlyChanges_MoveTheSequences) {
  memory_.Write(60, RandomBytes(72));  // the end of line 0, line 1, the start of line 2
  EXPECT_EQ(SequenceOf(0), kOneChange);
  EXPECT_EQ(SequenceOf(64), kOneChange);
  EXPECT_EQ(SequenceOf(128), kOneChange);
  EXPECT_EQ(SumOfSequences(), 3 * kOneChange);

  memory_.Store(192, 5);
  memory_.Atomic(Faa(At(192), 1).verb);
  EXPECT_EQ(SequenceOf(192), 2 * kOneChange);
  const uint64_t sum = SumOfSequences();

  Bytes buffer(5000);
  memory_.Read(0, buffer);
  EXPECT_EQ(memory_.Atomic(Cas(At(192), 5, 7).verb), 6u);
  memory_.WriteUnreachable(1000, RandomBytes(500));
  EXPECT_EQ(memory_.Load(192), 6u);
  memory_.Prefetch(Cas(At(192), 5, 7).verb);
  EXPECT_EQ(SumOfSequences(), sum);
}

// Given every word of a line. When CAS, masked CAS and FAA meet it. Expect what the verbs say, the word as it
// was as the answer, and the other words untouched.
TEST_F(LineMemoryTest, AtomicsOnEveryWordOfALine_ChangeThatWordOnly) {
  constexpr uint64_t kLine = 128;
  for (uint64_t word = 0; word < 8; ++word) {
    const FarAddr at = At(kLine + 8 * word);
    std::array<uint64_t, 8> expected{};
    for (uint64_t& w : expected) w = random_.Next();
    memory_.Write(kLine, std::as_bytes(std::span(expected)));
    const uint64_t first = expected[word];

    EXPECT_EQ(memory_.Atomic(Cas(at, first + 1, 1).verb), first);
    EXPECT_EQ(memory_.Atomic(Cas(at, first, 0x1234).verb), first);
    EXPECT_EQ(memory_.Atomic(MaskedCas(at, 0, 0x35, 0xff, 0, ~uint64_t{0}).verb), 0x1234u);
    EXPECT_EQ(memory_.Atomic(MaskedCas(at, 0, 0x34, 0xff, 0xab00, 0xff00).verb), 0x1234u);
    EXPECT_EQ(memory_.Atomic(Faa(at, 1).verb), 0xab34u);
    EXPECT_EQ(memory_.Atomic(Faa(at, ~uint64_t{0}).verb), 0xab35u);
    expected[word] = 0xab34;

    std::array<uint64_t, 8> actual{};
    memory_.Read(kLine, std::as_writable_bytes(std::span(actual)));
    EXPECT_EQ(actual, expected);
  }
}

// Given verbs as a backend has them. When they are executed. Expect the effect and the answer of each kind.
TEST_F(LineMemoryTest, ExecutesVerbs) {
  std::array<std::byte, 13> payload{};
  payload.fill(std::byte{7});
  Verb write = Write(At(5), payload).Lower();
  memory_.Execute(write);
  Verb unreachable = Unreachable(Write(At(18), payload)).Lower();
  memory_.Execute(unreachable);
  Verb faa = Faa(At(64), 3).Lower();
  memory_.Execute(faa);
  EXPECT_EQ(faa.old, 0u);
  Verb cas = Cas(At(64), 3, 4).Lower();
  memory_.Execute(cas);
  EXPECT_EQ(cas.old, 3u);

  std::array<std::byte, 72> read{};
  auto typed = Read(At(0), read);
  Verb verb = typed.Lower();
  memory_.Execute(verb);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(read[i], std::byte{static_cast<uint8_t>(i >= 5 && i < 31 ? 7 : 0)}) << i;
  EXPECT_EQ(read[64], std::byte{4});
}

// Given the node's own CPU. Expect that it and the verbs see each other's words.
TEST_F(LineMemoryTest, TheNodesOwnCpu_SeesWhatVerbsDo) {
  NodeMemory& node = memory_;
  node.Store(kRegionBytes - 8, 0x1122334455667788);
  EXPECT_EQ(memory_.Atomic(Faa(At(kRegionBytes - 8), 1).verb), 0x1122334455667788u);
  EXPECT_EQ(node.Load(kRegionBytes - 8), 0x1122334455667789u);
}

// Given verbs of any size up to the end of the region. Expect that asking for their lines has no effect.
TEST_F(LineMemoryTest, Prefetching_HasNoEffect) {
  FillRegion();
  for (const size_t size : {0, 1, 64, 1024, 100'000}) {
    Verb read;
    read.size = size;
    read.at = At(kRegionBytes - size);
    memory_.Prefetch(read);
    Verb write = read;
    write.kind = VerbKind::kWrite;
    memory_.Prefetch(write);
  }
  ExpectReadsAsModel(0, kRegionBytes);
}

}  // namespace
}  // namespace farside::fabric::memory
