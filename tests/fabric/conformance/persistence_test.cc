// What of "Persistence" in docs/memory-model.md every backend shows while its power is on: flushes are
// counted, disturb no client, and a failed one is not hidden. What survives a power cut is shown on the
// simulator (power_cut_test.cc).
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/embedded/embedded.h"
#include "fabric/memory/medium.h"
#include "fabric/memory/region.h"
#include "fabric/op.h"
#include "tests/fabric/conformance/backend.h"
#include "tests/fabric/conformance/cite.h"

namespace farside::fabric::conformance {
namespace {

class FabricPersistence : public FabricTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FabricPersistence, testing::ValuesIn(AllBackends()), NameOf);

constexpr CallId kRaise(1, 1);
constexpr uint64_t kMine = 0;                   // of the client that WRITEs
constexpr uint64_t kCounter = 2 * kLineBytes;   // raised by FAA
constexpr uint64_t kHandlers = 4 * kLineBytes;  // of the handler alone
using TwoLines = std::array<uint64_t, 16>;

// Stores a word of its own, and makes lines durable, of which clients use others.
void ServeRaise(CallTable& calls) {
  calls.Set(kRaise, [](NodeMemory& memory, ClientId, std::string_view) {
    memory.Flush(kMine, 2 * kLineBytes);
    const uint64_t next = memory.Load(kHandlers) + 1;
    memory.Store(kHandlers, next);
    memory.Flush(kCounter + 8, kHandlers - kCounter);  // ends with the handler's own line
    memory.Drain();
    EXPECT_EQ(memory.Load(kHandlers), next);
    memory.Flush(kHandlers, 0);
    return std::to_string(next);
  });
}

Task<Done> CallTimes(Client& client, uint64_t times) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < times; ++i) co_await op.Call(NodeId{0}, kRaise, "");
  co_return Done{};
}
Task<Done> WriteAndReadBack(Client& client, uint64_t times) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= times; ++i) {
    TwoLines mine;
    mine.fill(i);
    co_await op.InOrder(WriteObject(At(kMine), mine), Faa(At(kCounter), 1));
    const TwoLines found = co_await op.InOrder(Read<TwoLines>(At(kMine)));
    EXPECT_EQ(found, mine);
  }
  co_return Done{};
}

// Given handlers that flush and drain lines that clients change at the same time, and lines of their own.
// Expect that no client finds anything but what was stored, that no atomic is lost, and that lines and drains
// are counted.
const Cite kUnseen("fabric/43", "change nothing that any client sees");
const Cite kCounted("fabric/44", "counts the lines that handlers flush and how often they drain");
TEST_P(FabricPersistence, FlushesAreCountedAndDisturbNoClient) {
  InManyWorlds({4096}, [](World& world) {
    ServeRaise(world.calls());
    const uint64_t times = GetParam().simulated ? 3 : 50;
    const auto caller = world.Connect();
    const auto writer = world.Connect();
    const auto raiser = world.Connect();
    world.PlayWell(std::array{
        Part{caller.get(), [=](Client& client) { return CallTimes(client, times); }},
        Part{raiser.get(), [=](Client& client) { return CallTimes(client, times); }},
        Part{writer.get(), [=](Client& client) { return WriteAndReadBack(client, times); }},
    });
    EXPECT_EQ(ReadWord(*writer, At(kCounter)), times);
    EXPECT_EQ(ReadWord(*writer, At(kHandlers)), 2 * times);
    EXPECT_EQ(world.flushed(), (FlushCounts{.lines = 2 * times * (2 + 3), .drains = 2 * times}));
  });
}

// The n-th drain fails.
class FailingMedium final : public memory::Medium {
 public:
  explicit FailingMedium(int fails_at) : left_(fails_at) {}
  std::string_view name() const override { return "failing"; }
  void Flush(uint64_t, uint64_t) override {}

 private:
  Status DrainAll() override {
    if (--left_ != 0) return OkStatus();
    return Error(ErrorCode::kUnavailable, "Input/output error");
  }
  int left_;
};

Task<Done> CallOnce(Client& client, std::optional<ErrorCode>& error) {
  Op op(client, OpKind::kUpdate);
  const auto called = co_await op.Call(NodeId{0}, kRaise, "").Outcome();
  error = called.ok() ? std::nullopt : std::optional(called.error().code());
  co_return Done{};
}

// Given a handler that stores a word, makes it durable, and then tells others of it by another word; and a
// drain that fails. Expect that the client hears that the outcome is unknown, that the other word is never
// visible, and that READs go on while Calls are refused.
const Cite kFailed("fabric/45",
                   "the Call in which it happened ends with `kOutcomeUnknown`, nothing that a "
                   "handler stores from then on becomes visible, and every later Call");
TEST(FabricPersistenceFailure, AFlushThatFailsIsNotHidden) {
  std::vector<memory::Region> regions;
  regions.push_back(std::move(*memory::Region::Anonymous(4096)));
  std::vector<std::unique_ptr<memory::Medium>> media;
  media.push_back(std::make_unique<FailingMedium>(2));
  const auto fabric =
      std::move(*embedded::EmbeddedFabric::Serve(std::move(regions), nullptr, std::move(media)));
  fabric->calls().Set(kRaise, [](NodeMemory& memory, ClientId, std::string_view) {
    const uint64_t next = memory.Load(0) + 1;
    memory.Store(0, next);
    memory.Flush(0, 8);
    memory.Drain();
    memory.Store(64, next);
    return std::string();
  });
  const auto client = std::move(*fabric->Connect());
  std::optional<ErrorCode> error;
  ASSERT_TRUE(fabric::Run(*client, CallOnce(*client, error)).ok());
  EXPECT_EQ(error, std::nullopt);
  ASSERT_TRUE(fabric::Run(*client, CallOnce(*client, error)).ok());
  EXPECT_EQ(error, ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(ReadWord(*client, At(64)), 1u);
  const auto other = std::move(*fabric->Connect());
  ASSERT_TRUE(fabric::Run(*other, CallOnce(*other, error)).ok());
  EXPECT_EQ(error, ErrorCode::kUnavailable);
  EXPECT_EQ(ReadWord(*other, At(64)), 1u);
}

}  // namespace
}  // namespace farside::fabric::conformance
