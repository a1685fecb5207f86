// What `farside serve --hugepages on` says before it asks the kernel for huge pages.
#include "tools/serve/huge_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace farside::tools {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

Machine WithMemory(uint64_t available, uint64_t free_huge_pages) {
  Machine machine;
  machine.available_bytes = available;
  machine.huge_page_bytes = uint64_t{2} << 20;
  machine.free_huge_pages = free_huge_pages;
  return machine;
}

TEST(HugePages, EnoughMemory_OrEnoughReservedPages) {
  // Given machines that have the memory in one of two forms, or do not say. Expect no objection.
  EXPECT_TRUE(CheckHugePages(kGiB, WithMemory(2 * kGiB, 0)).ok());
  EXPECT_TRUE(CheckHugePages(kGiB, WithMemory(0, 512)).ok());
  EXPECT_TRUE(CheckHugePages(kGiB, Machine{}).ok());
}

TEST(HugePages, MoreThanThereIs_IsRefusedWithFiguresAndAdvice) {
  // Given too little memory, in the machine or in the control group. Expect an error that says how many huge
  // pages there are, and how to get more.
  const Status refused = CheckHugePages(4 * kGiB, WithMemory(3 * kGiB, 7));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  const std::string& message = refused.error().message();
  EXPECT_THAT(message, HasSubstr("7 are reserved and free"));
  EXPECT_THAT(message, HasSubstr("3GiB of other memory"));
  EXPECT_THAT(message, HasSubstr("sysctl vm.nr_hugepages=2048"));
  Machine container = WithMemory(64 * kGiB, 0);
  container.group_limit_bytes = kGiB;
  EXPECT_FALSE(CheckHugePages(4 * kGiB, container).ok());
}

TEST(HugePages, StopRequestedWhileTheyAreMade_EndsIt) {
  // Given a node that makes its huge pages. When it is asked to stop. Expect that it does.
  const auto memory = std::move(*fabric::shm::SharedMemory::Create(
      std::move(*fabric::memory::Region::Shareable(uint64_t{256} << 20)), fabric::shm::NewRegionId()));
  Logger log(
      LogLevel::kInfo, [](std::string_view) {}, std::chrono::system_clock::now);
  const Status made = MakeHugePages(*memory, log, [] { return true; });
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace farside::tools
