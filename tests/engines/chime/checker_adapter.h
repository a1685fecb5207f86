// The chime table behind an adapter for the checker: with keys=inline although its keys and values have any
// size, or with a scan where it asks for a key. What a scan says of each key must have been true at some
// moment, exactly as what a Get says.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "index/chime/chime.h"

namespace farside::index::chime {

enum class Asks : uint8_t { kGet, kScanAll, kScanSome, kLast };

struct CheckerAdapter {
  Asks asks = Asks::kGet;
  bool inline_keys = false;
  bool twins =
      false;  // inline keys are of both halves, two by two: they differ in the top bit only (chime/11)
  OptionMap options = {};
};

// Values of any size as 8 bytes: by number, and none of them looks like a counter.
class Values {
 public:
  std::string Short(std::string_view value) {
    const auto [known, is_new] = numbers_.emplace(std::string(value), kFirst + texts_.size());
    if (is_new) texts_.emplace_back(value);
    std::string bytes(8, '\0');
    StoreU64(reinterpret_cast<std::byte*>(bytes.data()), known->second);
    return bytes;
  }
  std::string Long(const std::string& bytes) const {
    const uint64_t number = LoadU64(AsBytes(bytes).data());
    return number >= kFirst ? texts_[number - kFirst] : bytes;
  }

 private:
  static constexpr uint64_t kFirst = uint64_t{1} << 63;
  std::map<std::string, uint64_t> numbers_;
  std::vector<std::string> texts_;
};

class AdaptedTable final : public Index {
 public:
  AdaptedTable(std::unique_ptr<Index> table, const CheckerAdapter& adapter, Values& values)
      : table_(std::move(table)), adapter_(adapter), values_(values) {}

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override {
    const std::string inside = KeyOf(key);
    std::string found_value;
    bool found = false;
    if (adapter_.asks == Asks::kGet) {
      found = co_await table_->Get(op, inside, found_value);
    } else if (adapter_.asks == Asks::kLast) {
      const KeyRange range = KeyRange::Between(inside, inside + '\0');
      Record record;
      found = co_await table_->Last(op, range, record);
      found_value = record.value;
    } else {
      const KeyRange range = adapter_.asks == Asks::kScanAll ? KeyRange::All() : KeyRange::From(inside);
      std::vector<Record> page;
      bool more = true;
      more = co_await table_->Scan(op, range, adapter_.asks == Asks::kScanAll ? 100 : 1, page);
      std::string before;
      for (const Record& record : page) {
        if (!before.empty() && record.key <= before)
          co_return Error(ErrorCode::kCorrupt, "a scan is not in order");
        before = record.key;
        if (record.key != inside) continue;
        found = true;
        found_value = record.value;
      }
      if (more && page.empty()) co_return Error(ErrorCode::kCorrupt, "a scan has more and returns nothing");
    }
    if (found) value = adapter_.inline_keys ? values_.Long(found_value) : found_value;
    co_return found;
  }
  Task<PutOutcome> Put(fabric::Op& op, std::string_view key, std::string_view value) override {
    const std::string inside = KeyOf(key);
    const std::string stored = ValueOf(value);
    const PutOutcome outcome = co_await table_->Put(op, inside, stored);
    co_return outcome;
  }
  Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) override {
    const std::string inside = KeyOf(key);
    const std::string stored = ValueOf(value);
    const bool inserted = co_await table_->Insert(op, inside, stored);
    co_return inserted;
  }
  Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) override {
    const std::string inside = KeyOf(key);
    const std::string stored = ValueOf(value);
    const bool updated = co_await table_->Update(op, inside, stored);
    co_return updated;
  }
  Task<bool> Delete(fabric::Op& op, std::string_view key) override {
    const std::string inside = KeyOf(key);
    const bool deleted = co_await table_->Delete(op, inside);
    co_return deleted;
  }
  Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                           std::string_view desired) override {
    const std::string inside = KeyOf(key);
    const std::string compared = ValueOf(expected);
    const std::string stored = ValueOf(desired);
    const bool set = co_await table_->CompareAndSet(op, inside, compared, stored);
    co_return set;
  }
  Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) override {
    const std::string inside = KeyOf(key);
    const uint64_t counter = co_await table_->Increment(op, inside, delta);
    co_return counter;
  }
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override {
    return table_->Next(op, cursor, page);
  }
  Task<TableStats> Stats(fabric::Op& op) override { return table_->Stats(op); }
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override { return table_->Walk(op, reach); }
  Task<Done> Verify(fabric::Op& op) override { return table_->Verify(op); }

 private:
  std::string KeyOf(std::string_view key) const {
    std::string inside(key);
    if (adapter_.twins) {
      inside.front() = static_cast<char>(inside.front() ^ (inside.back() & 1) << 7);
      inside.back() = static_cast<char>(inside.back() & ~1);
    }
    if (adapter_.inline_keys) inside.resize(8, '_');
    return inside;
  }
  std::string ValueOf(std::string_view value) {
    return adapter_.inline_keys ? values_.Short(value) : std::string(value);
  }

  const std::unique_ptr<Index> table_;
  const CheckerAdapter adapter_;
  Values& values_;
};

class AdaptedEngine final : public Engine {
 public:
  explicit AdaptedEngine(CheckerAdapter adapter) : adapter_(std::move(adapter)) {
    if (adapter_.inline_keys) adapter_.options["keys"] = "inline";
    engine_ = *MakeChimeEngine(adapter_.options);
  }
  std::string_view name() const override { return engine_->name(); }
  uint32_t layout_version() const override { return engine_->layout_version(); }
  uint64_t empty_bytes() const override { return engine_->empty_bytes(); }
  OptionMap recorded_options() const override { return engine_->recorded_options(); }
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override {
    return engine_->Create(op, pool, std::move(nodes));
  }
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override {
    return std::make_unique<AdaptedTable>(engine_->Open(pool, std::move(roots)), adapter_, values_);
  }
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override {
    return engine_->Describe(at, roots);
  }

 private:
  CheckerAdapter adapter_;
  std::shared_ptr<Engine> engine_;
  Values values_;
};

// Every way to ask, with the options under which few keys pass through everything.
inline std::vector<std::shared_ptr<Engine>> AllCheckerAdapters() {
  std::vector<std::shared_ptr<Engine>> engines;
  for (const OptionMap& options : (*MakeChimeEngine({}))->stress_options()) {
    if (options.contains("keys")) continue;  // the adapters choose it
    for (const bool inline_keys : {true, false}) {
      for (const Asks asks : {Asks::kGet, Asks::kScanAll, Asks::kScanSome, Asks::kLast}) {
        if (asks == Asks::kGet && !inline_keys) continue;  // what `farside check` does
        engines.push_back(std::make_shared<AdaptedEngine>(
            CheckerAdapter{.asks = asks, .inline_keys = inline_keys, .options = options}));
      }
    }
    for (const Asks asks : {Asks::kGet, Asks::kScanAll}) {
      engines.push_back(std::make_shared<AdaptedEngine>(
          CheckerAdapter{.asks = asks, .inline_keys = true, .twins = true, .options = options}));
    }
  }
  return engines;
}

}  // namespace farside::index::chime
