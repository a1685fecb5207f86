#include "fabric/memory/region.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fabric/memory/fixed_size.h"
#include "tests/support/landlock.h"

namespace farside::fabric::memory {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBytes = 3 * 4096;

Status Nothing(Region&) { return OkStatus(); }

// A folder of its own for every test.
class RegionFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "farside-region-XXXXXX").native();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name = "file") const { return (folder_ / name).native(); }

  std::string Contents(const std::string& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().native());
    }
    return names;
  }

  std::filesystem::path folder_;
};

TEST(RegionAnonymous, IsZeroedAndPersistsNothing) {
  Result<Region> region = Region::Anonymous(kBytes);
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(region->bytes().size(), kBytes);
  EXPECT_TRUE(std::ranges::all_of(region->bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_TRUE(region->Persist(0, kBytes).ok());
}

TEST(RegionAnonymous, LargeOnesCostNothingUntilTouched) {
  Result<Region> region = Region::Anonymous(uint64_t{1} << 40);
  ASSERT_TRUE(region.ok()) << region.error().ToString();
  region->bytes().back() = std::byte{1};
}

TEST(RegionAnonymous, MoreThanTheAddressSpace_IsAnError) {
  for (const uint64_t bytes : {uint64_t{1} << 60, ~uint64_t{0} - 4095, ~uint64_t{0}}) {
    const Result<Region> region = Region::Anonymous(bytes);
    ASSERT_FALSE(region.ok());
    EXPECT_EQ(region.error().code(), ErrorCode::kOutOfMemory);
  }
}

TEST(RegionAnonymous, AMovedRegionLeavesNothingBehind) {
  Region first = std::move(*Region::Anonymous(kBytes));
  std::byte* const data = first.bytes().data();
  Region second = std::move(first);
  EXPECT_EQ(second.bytes().data(), data);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move): that is what is tested
}

TEST_F(RegionFile, StoresReachTheFile) {
  // Given a file that was made with a mark in it.
  // When it is closed, opened, and marked again.
  // Expect both marks in it, and all of its blocks on the disk from the start.
  {
    const Result<Region> made = Region::CreateFile(Path(), kBytes, [](Region& region) {
      region.bytes()[0] = std::byte{'a'};
      return region.Persist(0, 1);
    });
    ASSERT_TRUE(made.ok()) << made.error().ToString();
    struct stat status {};
    ASSERT_EQ(::stat(Path().c_str(), &status), 0);
    EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, kBytes);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
  {
    const Result<Region> opened = Region::OpenFile(Path(), Region::Access::kShared);
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
    ASSERT_EQ(opened->bytes().size(), kBytes);
    EXPECT_EQ(opened->bytes()[0], std::byte{'a'});
    opened->bytes()[kBytes - 1] = std::byte{'z'};
    EXPECT_TRUE(opened->Persist(kBytes - 1, 1).ok());
    EXPECT_TRUE(opened->Persist(0, kBytes).ok());
    EXPECT_TRUE(opened->Persist(kBytes, 0).ok());
  }
  const std::string contents = Contents(Path());
  EXPECT_EQ(contents, "a" + std::string(kBytes - 2, '\0') + "z");
  EXPECT_THAT(Names(), ::testing::ElementsAre("file"));
}

// How many pages of a region the kernel has in memory.
size_t ResidentPages(const Region& region) {
  std::vector<unsigned char> pages((region.bytes().size() + 4095) / 4096);
  EXPECT_EQ(::mincore(region.bytes().data(), region.bytes().size(), pages.data()), 0);
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }));
}

TEST_F(RegionFile, Reloaded_ComesFromTheDisk) {
  // Given a file whose pages the kernel has in memory, some of them not yet written.
  // When it is reloaded. Expect that the kernel has none of them until they are read, and what was stored.
  struct statfs disk {};
  ASSERT_EQ(::statfs(folder_.c_str(), &disk), 0);
  if (disk.f_type == TMPFS_MAGIC) GTEST_SKIP() << "the folder of temporary files has no disk";
  {
    const auto made = Region::CreateFile(Path(), kBytes, Nothing);
    ASSERT_TRUE(made.ok());
  }
  const auto region = Region::OpenFile(Path(), Region::Access::kShared);
  ASSERT_TRUE(region.ok());
  std::fill(region->bytes().begin(), region->bytes().end(), std::byte{5});
  ASSERT_EQ(ResidentPages(*region), kBytes / 4096);
  ASSERT_TRUE(region->Reload().ok());
  EXPECT_EQ(ResidentPages(*region), 0u);
  EXPECT_TRUE(std::all_of(region->bytes().begin(), region->bytes().end(),
                          [](std::byte byte) { return byte == std::byte{5}; }));
}

TEST_F(RegionFile, PrivateStoresDoNotReachTheFile) {
  ASSERT_TRUE(Region::CreateFile(Path(), kBytes, Nothing).ok());
  ASSERT_EQ(::chmod(Path().c_str(), 0400), 0);
  const std::string before = Contents(Path());
  {
    const Result<Region> opened = Region::OpenFile(Path(), Region::Access::kPrivate);
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
    std::ranges::fill(opened->bytes(), std::byte{0xff});
    EXPECT_TRUE(opened->Persist(0, kBytes).ok());
    EXPECT_EQ(Contents(Path()), before);
  }
  EXPECT_EQ(Contents(Path()), before);
}

// Given a file to be served, new or not. When a process truncates it by the descriptor that clients get.
// Expect that it cannot, where the kernel has a way to forbid it, and that stores reach the file all the
// same.
TEST_F(RegionFile, ThatIsServed_CannotBeCutShortByItsDescriptor) {
  if (!KernelForbidsTruncation()) GTEST_SKIP() << "this kernel cannot forbid it";
  for (const bool made : {true, false}) {
    SCOPED_TRACE(made);
    const Result<Region> region = made ? Region::CreateFile(Path(), kBytes, Nothing, Region::Access::kServed)
                                       : Region::OpenFile(Path(), Region::Access::kServed);
    ASSERT_TRUE(region.ok()) << region.error().ToString();
    EXPECT_TRUE(HasFixedSize(region->descriptor()));
    for (const off_t size : {off_t{0}, off_t{kBytes / 2}, off_t{2 * kBytes}}) {
      EXPECT_EQ(::ftruncate(region->descriptor(), size), -1);
    }
    region->bytes()[kBytes - 1] = std::byte{7};
    EXPECT_EQ(Contents(Path()).size(), kBytes);
    EXPECT_EQ(Contents(Path()).back(), 7);
    EXPECT_TRUE(region->Persist(0, kBytes).ok());
  }
}

// Given a file that another process cuts short by its path. Expect that to persist it is an error that says
// so.
TEST_F(RegionFile, ThatWasCutShort_IsNotPersisted) {
  const Result<Region> region = Region::CreateFile(Path(), kBytes, Nothing);
  ASSERT_TRUE(region.ok());
  std::filesystem::resize_file(Path(), 4096);
  const Status persisted = region->Persist(0, kBytes);
  ASSERT_FALSE(persisted.ok());
  EXPECT_EQ(persisted.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(persisted.error().message(), HasSubstr("cut short"));
}

TEST_F(RegionFile, NoOtherProcessMayHaveAFileThatIsShared) {
  // Given a file that was just made, and later opened.
  // When it is opened again meanwhile.
  // Expect a refusal, until the first has gone; and that readers do not disturb each other.
  const auto expect_in_use = [this](Region::Access access) {
    const Result<Region> second = Region::OpenFile(Path(), access);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code(), ErrorCode::kUnavailable);
    EXPECT_EQ(second.error().message(), Path() + " is in use by another process; wait until it has ended");
  };
  {
    const Result<Region> made = Region::CreateFile(Path(), kBytes, Nothing);
    expect_in_use(Region::Access::kShared);
    expect_in_use(Region::Access::kPrivate);
  }
  {
    const Result<Region> first = Region::OpenFile(Path(), Region::Access::kShared);
    ASSERT_TRUE(first.ok());
    expect_in_use(Region::Access::kShared);
    expect_in_use(Region::Access::kPrivate);
  }
  const Result<Region> reader = Region::OpenFile(Path(), Region::Access::kPrivate);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(Region::OpenFile(Path(), Region::Access::kPrivate).ok());
  expect_in_use(Region::Access::kShared);
}

TEST_F(RegionFile, AProcessThatDiesGivesItsFileFree) {
  ASSERT_TRUE(Region::CreateFile(Path(), kBytes, Nothing).ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Result<Region> opened = Region::OpenFile(Path(), Region::Access::kShared);
    if (opened.ok()) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(Region::OpenFile(Path(), Region::Access::kShared).ok());
}

TEST_F(RegionFile, AnExistingFileIsNotReplaced) {
  std::ofstream(Path()) << "mine";
  const Result<Region> made = Region::CreateFile(Path(), kBytes, Nothing);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(Contents(Path()), "mine");
  EXPECT_THAT(Names(), ::testing::ElementsAre("file"));
}

TEST_F(RegionFile, AFileMadeMeanwhileIsNotReplaced) {
  const Result<Region> made = Region::CreateFile(Path(), kBytes, [this](Region&) {
    std::ofstream(Path()) << "faster";
    return OkStatus();
  });
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(Contents(Path()), "faster");
  EXPECT_THAT(Names(), ::testing::ElementsAre("file"));
}

TEST_F(RegionFile, AFailedPreparationLeavesNothing) {
  const Result<Region> made = Region::CreateFile(
      Path(), kBytes, [](Region&) -> Status { return Error(ErrorCode::kCorrupt, "no luck"); });
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "no luck");
  EXPECT_TRUE(Names().empty());
}

TEST_F(RegionFile, ACrashWhileMaking_LeavesNoFileOfThatName) {
  // Given a process that dies while it makes a file.
  // When another one makes the file.
  // Expect success.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    static_cast<void>(Region::CreateFile(Path(), kBytes, [](Region& region) {
      std::ranges::fill(region.bytes(), std::byte{1});
      ::raise(SIGKILL);
      return OkStatus();
    }));
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  ASSERT_EQ(Names().size(), 1u);
  EXPECT_THAT(Names()[0], ::testing::MatchesRegex("file\\.......")) << "what was being made";
  EXPECT_EQ(Region::OpenFile(Path(), Region::Access::kShared).error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(Region::CreateFile(Path(), kBytes, Nothing).ok());
  EXPECT_EQ(Contents(Path()), std::string(kBytes, '\0'));
}

TEST_F(RegionFile, MoreThanTheDiskHas_IsAnError) {
  const Result<Region> made = Region::CreateFile(Path(), uint64_t{1} << 60, Nothing);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(made.error().message(), HasSubstr("it needs 1048576TiB, and its file system has "));
  EXPECT_TRUE(Names().empty());
}

TEST_F(RegionFile, WhatCannotBeOpened_SaysWhy) {
  const auto error_of = [](const std::string& path) {
    const Result<Region> opened = Region::OpenFile(path, Region::Access::kShared);
    const Result<Region> looked_at = Region::OpenFile(path, Region::Access::kPrivate);
    if (opened.ok() || looked_at.ok()) return Error(ErrorCode::kUnsupported, "it was opened");
    EXPECT_EQ(opened.error().ToString(), looked_at.error().ToString());
    return opened.error();
  };
  EXPECT_EQ(error_of(Path()).ToString(), "kNotFound: cannot open " + Path() + ": No such file or directory");
  EXPECT_EQ(error_of(folder_).ToString(),
            "kInvalidArgument: cannot open " + folder_.native() + ": Is a directory");
  EXPECT_EQ(error_of("/dev/null").ToString(), "kInvalidArgument: /dev/null is not a regular file");

  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(Path("pipe")).ToString(),
            "kInvalidArgument: " + Path("pipe") + " is not a regular file");

  std::ofstream(Path("empty")).flush();
  EXPECT_EQ(error_of(Path("empty")).ToString(), "kInvalidArgument: " + Path("empty") + " is an empty file");
  EXPECT_EQ(error_of(Path(std::string(300, 'n'))).code(), ErrorCode::kInvalidArgument);
}

TEST_F(RegionFile, NoPermission_SaysSo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may open everything";
  ASSERT_TRUE(Region::CreateFile(Path(), kBytes, Nothing).ok());
  ASSERT_EQ(::chmod(Path().c_str(), 0400), 0);
  EXPECT_EQ(Region::OpenFile(Path(), Region::Access::kShared).error().ToString(),
            "kPermissionDenied: cannot open " + Path() + ": Permission denied");
  ASSERT_EQ(::chmod(folder_.c_str(), 0500), 0);
  EXPECT_EQ(Region::CreateFile(Path("other"), kBytes, Nothing).error().code(), ErrorCode::kPermissionDenied);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
}

TEST_F(RegionFile, NoFolder_SaysSo) {
  const Result<Region> made = Region::CreateFile(Path("nowhere/file"), kBytes, Nothing);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().ToString(),
            "kNotFound: cannot create " + Path("nowhere/file") + ": No such file or directory");
}

}  // namespace
}  // namespace farside::fabric::memory
