// How what handlers flush is made durable, and what becomes of a node for which that fails.
#include "fabric/memory/medium.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/embedded/embedded.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "tests/support/temporary_folder.h"

namespace farside::fabric::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr uint64_t kBytes = 4 * kPageBytes;
constexpr CallId kStoreAndFlush(1, 1);

Region NewFile(const std::string& path) {
  return std::move(*Region::CreateFile(path, kBytes, [](Region&) { return OkStatus(); }));
}
std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(MediumRanges, RangesThatTouchAreMerged) {
  MergedRanges ranges;
  // Given ranges in any order, some inside others and some beside others
  ranges.Add(40, 50);
  ranges.Add(10, 20);
  ranges.Add(30, 40);
  ranges.Add(12, 15);
  ranges.Add(60, 60);
  EXPECT_THAT(ranges.end_of(), ElementsAre(Pair(10, 20), Pair(30, 50)));
  // When one covers the gap between two. Expect one.
  ranges.Add(15, 35);
  EXPECT_THAT(ranges.end_of(), ElementsAre(Pair(10, 50)));
  ranges.Add(0, 100);
  EXPECT_THAT(ranges.end_of(), ElementsAre(Pair(0, 100)));
  ranges.Clear();
  EXPECT_TRUE(ranges.end_of().empty());
}

TEST(MediumKinds, MemoryThatEndsWithItsProcessHasNone) {
  const Region anonymous = std::move(*Region::Anonymous(kBytes));
  const Result<std::unique_ptr<Medium>> none = anonymous.NewMedium();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), ErrorCode::kUnsupported);
}

TEST(MediumKinds, AFileThatIsNoMemoryIsWrittenByTheKernel) {
  // Given a file on a file system that is none of memory. When some lines of it are flushed and drained, of
  // which the last stands at the end. Expect that this works, and that the file has what was stored.
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  const Region region = NewFile(path);
  const std::unique_ptr<Medium> medium = std::move(*region.NewMedium());
  EXPECT_EQ(medium->name(), "msync");
  for (const uint64_t at : {uint64_t{0}, uint64_t{64}, kPageBytes + 128, kBytes - 64}) {
    region.bytes()[at] = std::byte{'x'};
    medium->Flush(at, 64);
  }
  medium->Drain();
  medium->Drain();  // nothing was flushed
  EXPECT_FALSE(medium->failure().has_value());
  EXPECT_EQ(Contents(path)[kBytes - 64], 'x');
}

TEST(MediumKinds, LinesOfMemoryThatIsDurableAreFlushedByTheProcessor) {
  // Given a mapping that is said to be durable memory, which any memory can play
  std::vector<std::byte> bytes(kBytes);
  const std::unique_ptr<Medium> medium = NewPmemMedium(bytes, /*synchronous=*/true);
  if (medium == nullptr) GTEST_SKIP() << "built without libpmem";
  EXPECT_EQ(medium->name(), "libpmem");
  bytes[100] = std::byte{1};
  medium->Flush(64, 64);
  medium->Drain();
  EXPECT_FALSE(medium->failure().has_value());
}

TEST(MediumKinds, AUserMaySayThatAllMemoryIsDurable) {
  // Given PMEM_IS_PMEM_FORCE=1, which libpmem reads when a process begins: so this test runs itself again.
  if (std::getenv("PMEM_IS_PMEM_FORCE") == nullptr) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").native();
    const std::string command = "PMEM_IS_PMEM_FORCE=1 '" + self +
                                "' --gtest_filter=MediumKinds.AUserMaySayThatAllMemoryIsDurable > /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return;
  }
  std::vector<std::byte> bytes(kBytes);
  if (NewPmemMedium(bytes, true) == nullptr) GTEST_SKIP() << "built without libpmem";
  // Expect that any file is taken for memory
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  const Region region = NewFile(path);
  const std::unique_ptr<Medium> medium = std::move(*region.NewMedium());
  EXPECT_EQ(medium->name(), "libpmem");
  region.bytes()[0] = std::byte{'x'};
  medium->Flush(0, 64);
  medium->Drain();
  EXPECT_FALSE(medium->failure().has_value());
  EXPECT_EQ(Contents(path)[0], 'x');
}

TEST(MediumFailure, AFileThatIsCutShort_FailsAtTheNextDrain_AndStaysSo) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  const Region region = NewFile(path);
  const std::unique_ptr<Medium> medium = NewMsyncMedium(region.bytes(), region.descriptor());
  // Given a file that another process has cut short
  ASSERT_EQ(::truncate(path.c_str(), kPageBytes), 0);
  medium->Flush(0, 64);
  EXPECT_FALSE(medium->failure().has_value());
  medium->Drain();
  ASSERT_TRUE(medium->failure().has_value());
  EXPECT_EQ(medium->failure()->code(), ErrorCode::kCorrupt);
  EXPECT_THAT(medium->failure()->message(), HasSubstr("cut short"));
  // When it has its size again. Expect that it is not trusted any more.
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(kBytes)), 0);
  medium->Flush(0, 64);
  medium->Drain();
  EXPECT_TRUE(medium->failure().has_value());
}

// Fails at one drain, and notes what it is told.
class FailingMedium final : public Medium {
 public:
  struct Log {
    std::map<uint64_t, uint64_t> flushed;  // sizes by offset
    int drains = 0;
  };
  FailingMedium(Log& log, int fails_at) : log_(log), fails_at_(fails_at) {}
  std::string_view name() const override { return "failing"; }
  void Flush(uint64_t offset, uint64_t size) override { log_.flushed[offset] = size; }

 private:
  Status DrainAll() override {
    if (++log_.drains != fails_at_) return OkStatus();
    return Error(ErrorCode::kUnavailable, "the kernel cannot persist a mapped file: Input/output error");
  }

  Log& log_;
  const int fails_at_;
};

// Stores the next number, makes it durable, and tells readers of it by a second word.
void ServeStoreAndFlush(CallTable& calls) {
  calls.Set(kStoreAndFlush, [](NodeMemory& memory, ClientId, std::string_view) {
    const uint64_t next = memory.Load(0) + 1;
    memory.Store(0, next);
    memory.Flush(0, 65);
    memory.Drain();
    memory.Store(128, next);
    return std::to_string(next);
  });
}

TEST(MediumFailure, OfAServedNode_TheCallIsUnknownAndAllLaterOnesAreRefused) {
  FailingMedium::Log log;
  const Region region = std::move(*Region::Anonymous(kBytes));
  const auto stripes = std::make_unique<StripeTable>();
  ServedNode node(region.bytes(), *stripes, {1, 2}, nullptr, std::make_unique<FailingMedium>(log, 2));
  ServeStoreAndFlush(node.calls());
  // Given a Call whose flushes are done
  const Result<std::string> first = node.Call(kStoreAndFlush, ClientId{1}, "");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, "1");
  EXPECT_THAT(log.flushed, ElementsAre(Pair(0, 128)));
  EXPECT_EQ(node.flushed(), (FlushCounts{.lines = 2, .drains = 1}));
  EXPECT_EQ(node.memory().Load(128), 1u);
  // When one fails in the next
  const Result<std::string> second = node.Call(kStoreAndFlush, ClientId{1}, "");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), ErrorCode::kOutcomeUnknown);
  EXPECT_THAT(second.error().message(), HasSubstr("Input/output error"));
  // Expect that what it stored after the drain is not visible, and that no Call runs any more
  EXPECT_EQ(node.memory().Load(128), 1u);
  const Result<std::string> third = node.Call(kStoreAndFlush, ClientId{1}, "");
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(third.error().message(), HasSubstr("Input/output error"));
  EXPECT_EQ(log.drains, 2);
  EXPECT_EQ(node.memory().Load(0), 2u);
}

Task<Done> CallOnce(Client& client, ErrorCode* code) {
  Op op(client, OpKind::kUpdate);
  const auto outcome = co_await op.Call(NodeId{0}, kStoreAndFlush, "").Outcome();
  if (!outcome.ok()) *code = outcome.error().code();
  co_return Done{};
}

TEST(MediumFailure, OfAnEmbeddedNode_IsTheSame) {
  FailingMedium::Log log;
  std::vector<Region> regions;
  regions.push_back(std::move(*Region::Anonymous(kBytes)));
  std::vector<std::unique_ptr<Medium>> media;
  media.push_back(std::make_unique<FailingMedium>(log, 1));
  const auto fabric =
      std::move(*embedded::EmbeddedFabric::Serve(std::move(regions), nullptr, std::move(media)));
  ServeStoreAndFlush(fabric->calls());
  const std::unique_ptr<Client> client = std::move(*fabric->Connect());
  ErrorCode code{};
  ASSERT_TRUE(fabric::Run(*client, CallOnce(*client, &code)).ok());
  EXPECT_EQ(code, ErrorCode::kOutcomeUnknown);
  ASSERT_TRUE(fabric::Run(*client, CallOnce(*client, &code)).ok());
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_EQ(fabric->flushed(), (FlushCounts{.lines = 2, .drains = 1}));
}

TEST(MediumCounts, FlushesAreCountedWithoutOne) {
  const Region region = std::move(*Region::Anonymous(kBytes));
  const auto stripes = std::make_unique<StripeTable>();
  ServedNode node(region.bytes(), *stripes, {1, 2});
  ServeStoreAndFlush(node.calls());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(node.Call(kStoreAndFlush, ClientId{1}, "").ok());
  EXPECT_EQ(node.flushed(), (FlushCounts{.lines = 6, .drains = 3}));
  EXPECT_EQ(node.memory().Load(128), 3u);
}

}  // namespace
}  // namespace farside::fabric::memory
