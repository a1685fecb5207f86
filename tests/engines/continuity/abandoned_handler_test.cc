// Handlers that give up on a line: a part of a change is missing, as after a power cut.
#include "tests/engines/continuity/abandoned_handler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "index/continuity/handlers.h"
#include "tests/engines/continuity/bare_table.h"

namespace farside::index::continuity {
namespace {

namespace memory = fabric::memory;

TEST(ContinuityAbandonedHandler, OlderRecordsAreWhole_AndLaterHandlersGoOn) {
  // Given changes of records in slots and in blocks, of counters, with groups and growth
  // When a handler gives up at any of its loads and stores
  // Expect that its change was made or not, that all older records are there, and that the next handler ends
  // what readers wait for
  const AbandonedReport report = HandlersGiveUp();
  EXPECT_EQ(report.problem, "");
  EXPECT_GE(report.abandoned, 500u);
  EXPECT_GE(report.groups, 1u);
  EXPECT_GE(report.tables, 1u);
}

// Holds a line until a thread that waits for it has looked at the clock twice, and lets go of it when that
// thread is about to give up.
class Holder final : public Clock {
 public:
  explicit Holder(memory::Sequence& sequence) : sequence_(sequence) { sequence_.fetch_or(1); }
  ~Holder() override { sequence_.fetch_and(~memory::kHolderMask); }
  Nanos Now() const override {
    if (++looks_ == 2) sequence_.fetch_and(~memory::kHolderMask);
    return looks_ * memory::LinePatience::kLongest;
  }

 private:
  memory::Sequence& sequence_;
  mutable int looks_ = 0;
};

TEST(ContinuityAbandonedHandler, AtANodeWhoseLinesAreHeld) {
  // Given a table of one pair with some records, and a client of shared memory that holds one of its lines
  constexpr uint64_t kBytes = 4096;
  constexpr Shape kShape(1, 1, 2, 2, 1);
  std::vector<std::byte> fresh = EmptyTable(kShape, kBytes);
  PlainMemory plain(fresh);
  BareClient client(FirstFree(kShape));
  BareModel before;
  for (const char* key : {"a", "b"}) {
    const BareChange change{.key = key, .value = "old"};
    ASSERT_TRUE(client.Make(plain, change).ok());
    ApplyTo(before, change);
  }
  ChangeRequest request{.key = "a", .value = "new"};
  request.head = {.root = kBareRoot, .hash = Hash64(AsBytes("a")), .key_bytes = 1, .value_bytes = 3};
  BareModel after = before;
  after["a"] = "new";
  int abandoned = 0;
  for (uint64_t line = 0; line < kBytes / fabric::kLineBytes; ++line) {
    SCOPED_TRACE(line);
    memory::Region region = *memory::Region::Anonymous(kBytes);
    std::ranges::copy(fresh, region.bytes().begin());
    const auto stripes = std::make_unique<memory::StripeTable>();
    const Holder holder(stripes->sequences[line]);
    memory::ServedNode node(region.bytes(), *stripes, {1, 2}, &holder);
    Serve(node.calls());
    // When a change meets the line, and goes on behind it
    const Result<std::string> made = node.Call(kChangeCall, fabric::ClientId{1}, Encode(request));
    // Expect that its outcome is unknown, and all older records are there
    const auto records = BareView{.bytes = region.bytes()}.Records();
    ASSERT_TRUE(records.ok()) << records.error().message();
    const BareModel found(records->begin(), records->end());
    if (made.ok()) {
      EXPECT_EQ(found, after);
      continue;
    }
    ++abandoned;
    EXPECT_EQ(made.error().code(), ErrorCode::kOutcomeUnknown);
    EXPECT_TRUE(found == before || found == after);
    EXPECT_TRUE(node.Call(kChangeCall, fabric::ClientId{1}, Encode(request)).ok());
  }
  EXPECT_GE(abandoned, 4);  // the root, the indicator, the slots, and the word that names the pair
}

}  // namespace
}  // namespace farside::index::continuity
