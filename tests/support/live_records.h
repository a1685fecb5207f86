// Records of many sizes that a test puts, deletes and finds again, in a pool that is nearly full.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "farside/farside.h"

namespace farside {

class LiveRecords {
 public:
  explicit LiveRecords(double pool_bytes, uint64_t seed = 7) : pool_bytes_(pool_bytes), random_(seed) {}
  void Use(Session& session, const Table& table) {
    session_ = &session;
    table_ = &table;
  }

  // Not ok: the pool is full; every other error fails the test.
  Status Put(size_t bytes) {
    Status put = session_->Put(*table_, Key(next_), Value(next_, bytes));
    if (!put.ok()) {
      EXPECT_EQ(put.error().code(), ErrorCode::kOutOfMemory) << put.error().ToString();
      return put;
    }
    live_bytes_ += static_cast<double>(Key(next_).size() + bytes);
    live_.push_back({next_++, bytes});
    return put;
  }
  void PutUntilFull(size_t bytes) {
    while (Put(bytes).ok()) continue;
  }
  // A record that is live, at random.
  void Delete() {
    std::swap(live_[random_.Below(live_.size())], live_.back());
    const auto [number, bytes] = live_.back();
    const Result<bool> deleted = session_->Delete(*table_, Key(number));
    EXPECT_TRUE(deleted.ok() && *deleted) << Key(number);
    live_bytes_ -= static_cast<double>(Key(number).size() + bytes);
    live_.pop_back();
  }
  void DeleteAllBut(double share) {
    const auto kept = static_cast<size_t>(static_cast<double>(live_.size()) * share);
    while (live_.size() > kept) Delete();
  }
  // Puts as many bytes as so many pools have, of values of 16 to `largest` bytes, small ones as often as
  // large ones, and deletes others so that no more than `most_live` of the pool are live. Ends at the first
  // error.
  void Churn(double pools, double most_live, double largest) {
    double put_bytes = 0;
    while (put_bytes < pools * pool_bytes_) {
      const auto bytes =
          static_cast<size_t>(16 * std::pow(largest / 16, static_cast<double>(random_.Below(10'000)) / 1e4));
      while (live_bytes_ + static_cast<double>(bytes) > most_live * pool_bytes_) Delete();
      const Status put = Put(bytes);
      ASSERT_TRUE(put.ok()) << put.error().ToString() << "; " << live_share() << " are live, after "
                            << put_bytes / pool_bytes_ << " pools";
      put_bytes += static_cast<double>(bytes);
    }
  }
  void ExpectAll() {
    for (const auto& [number, bytes] : live_) {
      const Result<std::optional<std::string>> value = session_->Get(*table_, Key(number));
      ASSERT_TRUE(value.ok()) << value.error().ToString();
      ASSERT_TRUE(*value == Value(number, bytes)) << number;
    }
  }
  // Of keys and values, in the bytes of the pool.
  double live_share() const { return live_bytes_ / pool_bytes_; }

 private:
  static std::string Key(size_t i) { return "key-" + std::to_string(1'000'000 + i); }
  static std::string Value(size_t i, size_t bytes) {
    return std::string(bytes, static_cast<char>('a' + i % 26));
  }

  struct Stored {
    size_t number;
    size_t bytes;
  };
  const double pool_bytes_;
  Random random_;
  Session* session_ = nullptr;
  const Table* table_ = nullptr;
  std::vector<Stored> live_;
  double live_bytes_ = 0;
  size_t next_ = 0;
};

}  // namespace farside
