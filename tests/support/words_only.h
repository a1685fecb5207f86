// An engine that takes only keys and values of 8 bytes, whatever engine is behind it: so that what the tests
// make for such engines is tested also where there is none.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "index/index.h"

namespace farside::conformance {

class WordsOnlyIndex final : public index::Index {
 public:
  explicit WordsOnlyIndex(std::unique_ptr<index::Index> behind) : behind_(std::move(behind)) {}

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override {
    return IsWord(key) ? behind_->Get(op, key, value) : Refused<bool>();
  }
  Task<index::PutOutcome> Put(fabric::Op& op, std::string_view key, std::string_view value) override {
    return IsWord(key) && IsWord(value) ? behind_->Put(op, key, value) : Refused<index::PutOutcome>();
  }
  Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) override {
    return IsWord(key) && IsWord(value) ? behind_->Insert(op, key, value) : Refused<bool>();
  }
  Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) override {
    return IsWord(key) && IsWord(value) ? behind_->Update(op, key, value) : Refused<bool>();
  }
  Task<bool> Delete(fabric::Op& op, std::string_view key) override {
    return IsWord(key) ? behind_->Delete(op, key) : Refused<bool>();
  }
  Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                           std::string_view desired) override {
    const bool words = IsWord(key) && IsWord(expected) && IsWord(desired);
    return words ? behind_->CompareAndSet(op, key, expected, desired) : Refused<bool>();
  }
  Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) override {
    return IsWord(key) ? behind_->Increment(op, key, delta) : Refused<uint64_t>();
  }
  Task<bool> Next(fabric::Op& op, index::Cursor& cursor, std::vector<Record>& page) override {
    return behind_->Next(op, cursor, page);
  }
  // The bounds of a range are any bytes.
  Task<bool> Scan(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) override {
    return behind_->Scan(op, range, limit, page);
  }
  Task<bool> Last(fabric::Op& op, const KeyRange& range, Record& record) override {
    return behind_->Last(op, range, record);
  }
  Task<index::TableStats> Stats(fabric::Op& op) override { return behind_->Stats(op); }
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override { return behind_->Walk(op, reach); }
  Task<Done> Verify(fabric::Op& op) override { return behind_->Verify(op); }

 private:
  static bool IsWord(std::string_view bytes) { return bytes.size() == 8; }
  template <class T>
  static Task<T> Refused() {
    co_return Error(ErrorCode::kInvalidArgument, "this table takes only keys and values of 8 bytes");
  }

  const std::unique_ptr<index::Index> behind_;
};

class WordsOnly final : public index::Engine {
 public:
  explicit WordsOnly(std::shared_ptr<index::Engine> behind) : behind_(std::move(behind)) {}

  std::string_view name() const override { return behind_->name(); }
  index::Traits traits() const override {
    index::Traits traits = behind_->traits();
    traits.fixed_size = 8;
    return traits;
  }
  uint32_t layout_version() const override { return behind_->layout_version(); }
  uint64_t empty_bytes() const override { return behind_->empty_bytes(); }
  index::OptionMap recorded_options() const override { return behind_->recorded_options(); }
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override {
    return behind_->Create(op, pool, std::move(nodes));
  }
  std::unique_ptr<index::Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override {
    return std::make_unique<WordsOnlyIndex>(behind_->Open(pool, std::move(roots)));
  }
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override {
    return behind_->Describe(at, roots);
  }

 private:
  const std::shared_ptr<index::Engine> behind_;
};

}  // namespace farside::conformance
