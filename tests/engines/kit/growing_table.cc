#include "tests/engines/kit/growing_table.h"

#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "index/kit/growing_partitions.h"
#include "index/kit/growing_root.h"
#include "index/kit/keyed_index.h"
#include "index/kit/options.h"

namespace farside::index::growing {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"most_version",
     [](Options& o, const OptionText& given) { return Set(o.most_version, given.Number(1, kMostVersion)); }},
    {"max_load",
     [](Options& o, const OptionText& given) { return Set(o.max_load, given.Fraction(1e-6, 0.95)); }},
    {"burst", [](Options& o, const OptionText& given) { return Set(o.burst, given.Number(0, 1 << 20)); }},
});

class GrowingTable final : public KeyedIndex<GrowingTable> {
 public:
  GrowingTable(const Options& options, pool::PoolClient& pool, std::span<const FarAddr> roots)
      : KeyedIndex(pool, options), parts_(options, pool, roots) {}

  Part& part() { return parts_[0]; }

  Task<bool> Next(Op& op, Cursor&, std::vector<Record>&) override {
    op.End(OpKind::kScan, OpOutcome::kDone);
    co_return false;
  }
  Task<TableStats> Stats(Op& op) override {
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    co_return TableStats{};
  }
  Task<Done> Walk(Op& op, pool::Reach& reach) override {
    co_await part().Refresh(op);
    reach.Mark(part().root(), sizeof(Root));
    for (size_t segment = 0; segment < part().directory().newest; ++segment)
      reach.Mark(FarAddr(part().node(), part().directory().bases[segment]), Part::BytesOf(segment));
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    co_return Done{};
  }
  Task<Done> Verify(Op& op) override {
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    co_return Done{};
  }

 private:
  friend class KeyedIndex<GrowingTable>;

  ChangeContext ContextOf(Op& op, Change& change) {
    return ChangeContext(pool(), op, change, Hash64(AsBytes(change.key)), part().node());
  }
  SearchContext ContextOf(Op& op, std::string_view key, std::string& value) {
    return SearchContext(pool(), op, key, Hash64(AsBytes(key)), part().node(), value);
  }
  Task<Attempt> TryChange(ChangeContext& context) {
    if (part().IsBehind()) co_await part().CatchUp(context.op);
    part().CountRecords(1);
    context.result.applied = true;
    co_return Attempt::kDone;
  }
  Task<bool> TrySearch(SearchContext& context) {
    if (part().IsBehind()) co_await part().CatchUp(context.op);
    part().CountOperation();
    co_return false;
  }

  GrowingPartitions<Part> parts_;
};

class GrowingEngine final : public Engine {
 public:
  explicit GrowingEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "growing"; }
  uint32_t layout_version() const override { return 1; }
  uint64_t empty_bytes() const override { return sizeof(Root) + Part::BytesOf(0); }
  OptionMap recorded_options() const override { return {}; }
  Task<std::vector<FarAddr>> Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) override {
    return MakeGrowingTable(op, pool, std::move(nodes), {.line = {}, .line_bytes = Part::BytesOf(0)});
  }
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<FarAddr> roots) override {
    return std::make_unique<GrowingTable>(options_, pool, roots);
  }
  std::string Describe(FarAddr at, std::span<const FarAddr> roots) const override {
    return DescribeGrowingRoot(at, roots);
  }

 private:
  const Options options_;
};

}  // namespace

Result<std::shared_ptr<Engine>> MakeGrowingEngine(const OptionMap& options) {
  const Result<Options> parsed = ParseOptions("the growing table", kRules, options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<GrowingEngine>(*parsed));
}

Part& Member::part() { return static_cast<GrowingTable&>(index()).part(); }

Task<Done> Member::Look() {
  co_await Get("looks");
  co_return Done{};
}

Task<Done> Member::RequestAndLook() {
  co_await Look();
  part().RequestGrowth();
  co_await Look();
  co_return Done{};
}

Task<Done> Member::Sync() {
  Op op(client(), OpKind::kMaintenance);
  co_await pool().Sync(op, false);
  co_return Done{};
}

Task<FarAddr> Member::Allocate(uint64_t bytes) {
  Op op(client(), OpKind::kMaintenance);
  const FarAddr block = co_await pool().allocator(part().node()).Allocate(op, bytes);
  co_return block;
}

}  // namespace farside::index::growing
