#include "fabric/memory/page_gatherer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/log.h"
#include "fabric/memory/map_shared.h"
#include "fabric/memory/region.h"

namespace farside::fabric::memory {
namespace {

using Next = PageGatherer::Next;

constexpr uint64_t kRanges = 20;

// The bytes of a mapping that are in huge pages, as the kernel counts them.
uint64_t HugeBytes(const void* begin) {
  std::ifstream smaps("/proc/self/smaps");
  const std::string wanted = fmt::format("{:x}-", reinterpret_cast<uintptr_t>(begin));
  constexpr std::string_view kField = "ShmemPmdMapped:";
  bool in_it = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.starts_with(wanted)) in_it = true;
    if (in_it && line.starts_with(kField)) return std::stoull(line.substr(kField.size())) * 1024;
  }
  return 0;
}

class PageGathererTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!PageGatherer::KernelCan()) GTEST_SKIP() << "this kernel does not gather pages (Linux 6.1 does)";
  }

  std::span<std::byte> Range(uint64_t i) const {
    return region_.bytes().subspan(i * kHugePageBytes, kHugePageBytes);
  }
  void Fill(uint64_t i, uint64_t bytes = kHugePageBytes) const {
    std::memset(Range(i).data(), static_cast<int>(i) + 1, bytes);
  }
  bool Holds(uint64_t i, uint64_t bytes = kHugePageBytes) const {
    for (uint64_t at = 0; at < bytes; ++at) {
      if (Range(i)[at] != static_cast<std::byte>(i + 1)) return false;
    }
    return true;
  }
  // Until the pass is over.
  Next Pass() {
    Next next = Next::kMore;
    while (next == Next::kMore) next = gatherer_.Step();
    return next;
  }

  Region region_ = std::move(*Region::Shareable(kRanges * kHugePageBytes + 4096));
  PageGatherer gatherer_{region_.bytes(), region_.descriptor()};
};

// Given a region with full, sparse and empty ranges. When pages are gathered. Expect that the full ones are
// huge pages, for this mapping and another one, and hold what they held; and that the others take no more
// memory than before.
TEST_F(PageGathererTest, WhatIsFullBecomesHugeAndTheRestStays) {
  Fill(3);
  Fill(4);
  Fill(kRanges - 1, kHugePageBytes / 2);
  Fill(9, 4096);
  void* const elsewhere = MapShared(region_.descriptor(), region_.bytes().size());
  ASSERT_NE(elsewhere, MAP_FAILED);
  const Next next = Pass();
  if (next == Next::kLater) {
    ::munmap(elsewhere, region_.bytes().size());
    GTEST_SKIP() << "the kernel has no huge page just now";
  }
  EXPECT_EQ(next, Next::kIdle);
  EXPECT_EQ(gatherer_.gathered(), 3u);
  EXPECT_TRUE(Holds(3) && Holds(4) && Holds(kRanges - 1, kHugePageBytes / 2) && Holds(9, 4096));
  EXPECT_EQ(Range(kRanges - 1).back(), std::byte{0});
  EXPECT_EQ(HugeBytes(region_.bytes().data()), 3 * kHugePageBytes);

  const auto* const other = static_cast<const std::byte*>(elsewhere);
  EXPECT_EQ(other[3 * kHugePageBytes], std::byte{4});
  EXPECT_EQ(other[5 * kHugePageBytes - 1], std::byte{5});
  EXPECT_EQ(HugeBytes(elsewhere), 2 * kHugePageBytes) << "what was touched there";
  ::munmap(elsewhere, region_.bytes().size());
}

// Given a region of which everything is gathered. Expect that nothing is done until more is stored, and that
// what was stored then is gathered too.
TEST_F(PageGathererTest, WhatIsStoredLaterIsGatheredLater) {
  EXPECT_EQ(gatherer_.Step(), Next::kIdle) << "nothing is there";
  Fill(0);
  if (Pass() == Next::kLater) GTEST_SKIP() << "the kernel has no huge page just now";
  EXPECT_EQ(gatherer_.Step(), Next::kIdle);
  EXPECT_EQ(gatherer_.gathered(), 1u);
  Fill(1);
  Fill(2);
  if (Pass() == Next::kLater) GTEST_SKIP() << "the kernel has no huge page just now";
  EXPECT_EQ(gatherer_.gathered(), 3u);
  EXPECT_TRUE(Holds(0) && Holds(1) && Holds(2));
}

// Given more full ranges than a step gathers. Expect that a step does its part and says that there is more.
TEST_F(PageGathererTest, AStepIsBounded) {
  for (uint64_t i = 0; i < kRanges; ++i) Fill(i);
  static_assert(kRanges > 2 * PageGatherer::kGathers);
  const Next first = gatherer_.Step();
  if (first == Next::kLater || gatherer_.gathered() < PageGatherer::kGathers)
    GTEST_SKIP() << "the kernel has no huge page just now";
  EXPECT_EQ(first, Next::kMore);
  EXPECT_EQ(gatherer_.gathered(), PageGatherer::kGathers);
}

// Given memory at an address that no huge page can have. Expect that the gatherer says so and does nothing.
TEST_F(PageGathererTest, MemoryThatCannotHaveThemIsLeftAlone) {
  Fill(0);
  PageGatherer crooked(region_.bytes().subspan(4096), region_.descriptor());
  EXPECT_EQ(crooked.Step(), Next::kNever);
  EXPECT_EQ(HugeBytes(region_.bytes().data()), 0u);
}

// Given memory at such an address. Expect that a thread says so, and can be stopped all the same.
TEST_F(PageGathererTest, AThreadThatCannotSaysSoOnce) {
  std::mutex mutex;
  std::string said;
  Logger log(LogLevel::kInfo, [&](std::string_view line) {
    const std::scoped_lock lock(mutex);
    said += line;
  });
  {
    const PageGathererThread thread(region_.bytes().subspan(4096), region_.descriptor(), log);
    while (true) {
      const std::scoped_lock lock(mutex);
      if (!said.empty()) break;
    }
  }
  EXPECT_EQ(said, "warn: goes without huge pages: the kernel does not gather them for this memory\n");
}

// Given a thread over a region that is being stored to. Expect that nothing is lost, and that it stops when
// it is told.
TEST_F(PageGathererTest, AThreadGathersBesideStores) {
  Logger log(LogLevel::kInfo, [](std::string_view) {});
  {
    const PageGathererThread thread(region_.bytes(), region_.descriptor(), log);
    for (uint64_t i = 0; i < kRanges; ++i) Fill(i);
  }
  for (uint64_t i = 0; i < kRanges; ++i) EXPECT_TRUE(Holds(i)) << i;
}

}  // namespace
}  // namespace farside::fabric::memory
