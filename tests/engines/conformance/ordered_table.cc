#include "tests/engines/conformance/ordered_table.h"

#include <algorithm>
#include <limits>

#include "pool/region/superblock.h"

namespace farside::conformance {
namespace {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::conformance::World;

constexpr uint64_t kRegionBytes = 8 << 20;
constexpr uint64_t kPiece = 64 << 10;
constexpr size_t kNodes = 2;
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// Backends have their memory elsewhere, so the pool is made here and written to them.
void Format(World& world) {
  std::vector<std::byte> bytes(kRegionBytes + pool::kPage);
  void* start = bytes.data();
  size_t space = bytes.size();
  std::align(pool::kPage, kRegionBytes, start, space);
  const std::span<std::byte> region(static_cast<std::byte*>(start), kRegionBytes);
  const std::unique_ptr<fabric::Client> client = world.Connect();
  for (uint16_t node = 0; node < kNodes; ++node) {
    const pool::Geometry geometry =
        Must(pool::FormatVolatile(region, {.chunk_bytes = kPiece}, {1, uint64_t{node}}));
    const uint64_t head = geometry.first_chunk();
    for (uint64_t at = 0; at < head; at += kPiece) {
      fabric::conformance::WriteBytes(*client, fabric::conformance::At(at, node),
                                      region.subspan(at, std::min(kPiece, head - at)));
    }
  }
}

}  // namespace

std::vector<OrderedUnderTest> OrderedOnAllBackends() {
  std::vector<OrderedUnderTest> tests;
  for (const EngineUnderTest& engine : OrderedEngines()) {
    // What an unusual shape does to a scan is the same on every backend, so those run on two of them.
    const bool unusual = engine.label.find("_stress_") != std::string::npos || engine.label == "words_only";
    for (const fabric::conformance::BackendUnderTest& backend : fabric::conformance::AllBackends()) {
      const bool is_one_of_two = backend.name == "sim" || backend.name == "embedded";
      if (!unusual || is_one_of_two) tests.push_back({.backend = backend, .engine = engine});
    }
  }
  return tests;
}

std::string OrderedLabel(const testing::TestParamInfo<OrderedUnderTest>& info) {
  return info.param.engine.label + "_on_" + info.param.backend.name;
}

// ---- OrderedClient -------------------------------------------------------------------------------------

OrderedClient::OrderedClient(std::unique_ptr<fabric::Client> client, const EngineUnderTest& engine)
    : client_(std::move(client)) {
  Must(fabric::Run(*client_, JoinWithTable(engine)));
}

Task<Done> OrderedClient::JoinWithTable(const EngineUnderTest& engine) {
  Op op(*client_, OpKind::kMaintenance);
  const auto find = [make = engine.make](std::string_view, const index::OptionMap& options) {
    return make(options);
  };
  session_ = co_await store::Registration::Join(op, *client_, find, {});
  table_.emplace(co_await session_->tables().CreateOrOpen(op, "t", engine.engine, engine.options));
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

void OrderedClient::Put(std::string_view key, std::string_view value) {
  Op op(*client_, OpKind::kUpdate);
  Must(fabric::Run(*client_, index().Put(op, key, value)));
}

bool OrderedClient::Delete(std::string_view key) {
  Op op(*client_, OpKind::kDelete);
  return Must(fabric::Run(*client_, index().Delete(op, key)));
}

OrderedClient::Page OrderedClient::Scan(const KeyRange& range, size_t limit) {
  Op op(*client_, OpKind::kScan);
  Page page;
  page.more = Must(fabric::Run(*client_, index().Scan(op, range, limit, page.records)));
  return page;
}

std::optional<Record> OrderedClient::Last(const KeyRange& range) {
  Op op(*client_, OpKind::kScan);
  Record record;
  if (!Must(fabric::Run(*client_, index().Last(op, range, record)))) return std::nullopt;
  return record;
}

// ---- OrderedTest ---------------------------------------------------------------------------------------

OrderedTest::OrderedTest(uint64_t seed) {
  fabric::conformance::WorldOptions options;
  options.seed = seed;
  options.region_bytes.assign(kNodes, kRegionBytes);
  world_ = GetParam().backend.open(options);
  Format(*world_);
  table_ = NewClient();
}

std::unique_ptr<OrderedClient> OrderedTest::NewClient() {
  return std::make_unique<OrderedClient>(world_->Connect(), GetParam().engine);
}

std::string OrderedTest::Fitted(std::string_view text) const {
  std::string fitted(text);
  if (takes_any_size()) return fitted;
  EXPECT_LE(text.size(), *GetParam().engine.traits.fixed_size);
  fitted.resize(*GetParam().engine.traits.fixed_size, '\0');
  return fitted;
}

void OrderedTest::Put(const std::string& key, const std::string& value) {
  table_->Put(key, value);
  model_[key] = value;
}

void OrderedTest::Delete(std::string key) {
  const bool was_there = model_.erase(key) == 1;
  EXPECT_EQ(table_->Delete(key), was_there);
}

std::vector<Record> OrderedTest::Expected(const KeyRange& range) const {
  std::vector<Record> records;
  for (const auto& [key, value] : model_) {
    if (range.Has(key)) records.push_back({key, value});
  }
  return records;
}

void OrderedTest::ExpectRange(const KeyRange& range) {
  const std::vector<Record> expected = Expected(range);
  const size_t size = expected.size();
  for (const size_t limit :
       {size_t{1}, size_t{2}, std::max<size_t>(1, size / 2), std::max<size_t>(1, size), size + 1, kNoLimit}) {
    const OrderedClient::Page page = table_->Scan(range, limit);
    const auto end = expected.begin() + static_cast<ptrdiff_t>(std::min(size, limit));
    EXPECT_EQ(page.records, std::vector<Record>(expected.begin(), end)) << "limit " << limit;
    // It must not deny that there are more, and must know it if it could return fewer than were asked for.
    if (size > limit) {
      EXPECT_TRUE(page.more) << "limit " << limit;
    }
    if (size < limit) {
      EXPECT_FALSE(page.more) << "limit " << limit;
    }
  }
  const std::optional<Record> last = table_->Last(range);
  EXPECT_EQ(last.has_value(), size > 0);
  if (last.has_value() && size > 0) {
    EXPECT_EQ(*last, expected.back());
  }
}

}  // namespace farside::conformance
