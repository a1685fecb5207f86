#include "tests/engines/kit/toy_table.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/kit/keyed_index.h"
#include "index/kit/zeroed_roots.h"
#include "pool/memory/block.h"

namespace farside::index::toy {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

constexpr Nanos kAttemptTakes = std::chrono::microseconds(5);
constexpr Nanos kLateBy = std::chrono::microseconds(50);
constexpr uint64_t kRootBytes = 64;

struct ToyChange : index::ChangeContext {
  using index::ChangeContext::ChangeContext;
  bool MayHaveEffect() const { return posted; }
  bool posted = false;
};

struct ToyOptions {
  bool share_searches;
  Nanos backoff = std::chrono::microseconds(2);
};

class ToyTable final : public KeyedIndex<ToyTable> {
 public:
  ToyTable(pool::PoolClient& pool, FarAddr root, std::shared_ptr<ToyState> state)
      : KeyedIndex(pool, ToyOptions{state->share_searches}),
        root_(root),
        node_(root.node),
        state_(std::move(state)) {}

  Task<bool> Next(Op& op, Cursor&, std::vector<Record>&) override {
    op.End(OpKind::kScan, OpOutcome::kDone);
    co_return false;
  }
  Task<TableStats> Stats(Op& op) override {
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    co_return TableStats{};
  }
  Task<Done> Walk(Op& op, pool::Reach& reach) override {
    reach.Mark(root_, kRootBytes);
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    co_return Done{};
  }
  Task<Done> Verify(Op& op) override {
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    co_return Done{};
  }

 private:
  friend class KeyedIndex<ToyTable>;

  ToyChange ContextOf(Op& op, Change& change) {
    return ToyChange(pool(), op, change, Hash64(AsBytes(change.key)), node_);
  }
  SearchContext ContextOf(Op& op, std::string_view key, std::string& value) {
    return SearchContext(pool(), op, key, Hash64(AsBytes(key)), node_, value);
  }

  Step NextStep(const OperationContext& context) {
    if (state_->dropped) state_->Complain("an attempt began at a table that is dropped");
    if (!context.pin.has_value()) state_->Complain("an attempt began without a pin");
    state_->attempts.push_back(context.attempt);
    Step step;
    if (!state_->script.empty()) {
      step = state_->script.front();
      state_->script.pop_front();
    }
    if (state_->always_contended) step = Step::Fail(ErrorCode::kContended);
    return step;
  }
  // Takes time, and comes to what the script says: an error, or true if the attempt is to succeed.
  Task<bool> Play(OperationContext& context, Step step) {
    Nanos takes = kAttemptTakes;
    if (step.kind == Step::Kind::kSucceedLate) takes = kLateBy;
    if (step.kind == Step::Kind::kHang) takes = std::chrono::hours(1);
    co_await context.op.Pause(takes);
    if (step.kind == Step::Kind::kFail) co_return Error(step.error, "as the script has it");
    co_return step.kind == Step::Kind::kSucceed || step.kind == Step::Kind::kSucceedLate;
  }

  // An attempt of a change, for as long as this exists.
  class Running {
   public:
    Running(ToyState& state, std::string_view key) : state_(state), key_(key) {
      if (++state_.running[key_] > 1) state_.Complain("two changes of one key are under way at once");
      state_.most_running = std::max(state_.most_running, state_.running.size());
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
      state_.running.erase(key_);
      ++state_.ended;
    }

   private:
    ToyState& state_;
    const std::string key_;
  };

  Task<Attempt> TryChange(ToyChange& context) {
    const Running running(*state_, context.key);
    const Step step = NextStep(context);
    state_->change = &context;
    context.posted |= step.in_doubt;
    if (step.with_draft) {
      const uint64_t bytes = pool::BlockBytes(context.key.size(), 8);
      if (!context.draft.Reserve(pool().allocator(node_), bytes))
        co_await context.draft.FetchRoom(context.op);
    }
    const Result<bool> played = co_await Play(context, step).Outcome();
    if (!played.ok()) co_return played.error();
    if (!*played) co_return Attempt::kRetry;
    co_return Apply(context);
  }

  Result<Attempt> Apply(ToyChange& context) {
    std::optional<std::string_view> found;
    const auto record = state_->records.find(context.key);
    if (record != state_->records.end()) found = record->second;
    const Result<Decision> decision = Decide(context.change, found);
    if (!decision.ok()) return decision.error();
    context.result = {
        .was_present = found.has_value(), .applied = decision->applied, .counter = decision->counter};
    if (!decision->applied) return Attempt::kDone;
    if (decision->removes) {
      state_->records.erase(std::string(context.key));
      return Attempt::kDone;
    }
    std::string stored(decision->Value(context.change));
    if (stored.size() > state_->most_value_bytes) return Error(ErrorCode::kOutOfMemory, "it is too long");
    state_->records.insert_or_assign(std::string(context.key), std::move(stored));
    return Attempt::kDone;
  }

  // Its sample is taken when it begins.
  Task<bool> TrySearch(SearchContext& context) {
    const Step step = NextStep(context);
    std::optional<std::string> sample;
    const auto record = state_->records.find(context.key);
    if (record != state_->records.end()) sample = record->second;
    const Result<bool> played = co_await Play(context, step).Outcome();
    ++state_->ended;
    if (!played.ok()) co_return played.error();
    if (!sample.has_value()) co_return false;
    context.value = *sample;
    co_return true;
  }

  const FarAddr root_;
  const NodeId node_;
  const std::shared_ptr<ToyState> state_;
};

class ToyEngine final : public Engine {
 public:
  explicit ToyEngine(std::shared_ptr<ToyState> state) : state_(std::move(state)) {}

  std::string_view name() const override { return "toy"; }
  uint32_t layout_version() const override { return 1; }
  uint64_t empty_bytes() const override { return kRootBytes; }
  OptionMap recorded_options() const override { return {}; }
  Task<std::vector<FarAddr>> Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) override {
    return MakeZeroedRoots(op, pool, std::move(nodes), kRootBytes);
  }
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<FarAddr> roots) override {
    return std::make_unique<ToyTable>(pool, roots.front(), state_);
  }
  std::string Describe(FarAddr, std::span<const FarAddr>) const override { return ""; }

 private:
  const std::shared_ptr<ToyState> state_;
};

// Clients name the state that they share by its address. Those that only walk the pool's tables name none.
constexpr char kStateOption[] = "state";
std::string NameOf(const ToyState& state) { return std::to_string(reinterpret_cast<uintptr_t>(&state)); }

}  // namespace

Result<std::shared_ptr<Engine>> MakeToyEngine(const OptionMap& options) {
  std::shared_ptr<ToyState> state = std::make_shared<ToyState>();
  const auto named = options.find(kStateOption);
  if (named != options.end()) {
    uintptr_t address = 0;
    std::from_chars(named->second.data(), named->second.data() + named->second.size(), address);
    state = std::shared_ptr<ToyState>(reinterpret_cast<ToyState*>(address), [](ToyState*) {});
  }
  return std::shared_ptr<Engine>(std::make_shared<ToyEngine>(std::move(state)));
}

ToyMember::ToyMember(TableWorld& world, ToyState& state)
    : TableMember(world, "toy", MakeToyEngine, {{kStateOption, NameOf(state)}}) {}

}  // namespace farside::index::toy
