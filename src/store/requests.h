// The operations on tables as values, which SessionState performs at once or as a task: what an operation is
// counted as, how large its key and value are, and which function of an index it calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/op.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/task.h"
#include "index/index.h"

namespace farside::store {

// What the caller is told: of a put, only that it was done.
inline Done AnswerOf(index::PutOutcome /*outcome*/) { return Done{}; }
template <class T>
T AnswerOf(T answer) {
  return answer;
}

struct GetRequest {
  using Answer = bool;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kSearch;
  std::string_view key;
  std::string* value;

  size_t value_bytes() const { return 0; }
  Task<bool> Start(fabric::Op& op, index::Index& index) const { return index.Get(op, key, *value); }
};

struct PutRequest {
  using Answer = Done;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kUpdate;
  std::string_view key;
  std::string_view value;

  size_t value_bytes() const { return value.size(); }
  Task<index::PutOutcome> Start(fabric::Op& op, index::Index& index) const {
    return index.Put(op, key, value);
  }
};

struct InsertRequest {
  using Answer = bool;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kInsert;
  std::string_view key;
  std::string_view value;

  size_t value_bytes() const { return value.size(); }
  Task<bool> Start(fabric::Op& op, index::Index& index) const { return index.Insert(op, key, value); }
};

struct UpdateRequest {
  using Answer = bool;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kUpdate;
  std::string_view key;
  std::string_view value;

  size_t value_bytes() const { return value.size(); }
  Task<bool> Start(fabric::Op& op, index::Index& index) const { return index.Update(op, key, value); }
};

struct DeleteRequest {
  using Answer = bool;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kDelete;
  std::string_view key;

  size_t value_bytes() const { return 0; }
  Task<bool> Start(fabric::Op& op, index::Index& index) const { return index.Delete(op, key); }
};

struct CompareAndSetRequest {
  using Answer = bool;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kUpdate;
  std::string_view key;
  std::string_view expected;
  std::string_view desired;

  size_t value_bytes() const { return std::max(expected.size(), desired.size()); }
  Task<bool> Start(fabric::Op& op, index::Index& index) const {
    return index.CompareAndSet(op, key, expected, desired);
  }
};

struct IncrementRequest {
  using Answer = uint64_t;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kUpdate;
  std::string_view key;
  uint64_t delta;

  size_t value_bytes() const { return 0; }
  Task<uint64_t> Start(fabric::Op& op, index::Index& index) const { return index.Increment(op, key, delta); }
};

struct NextRequest {
  using Answer = bool;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kScan;
  std::string_view key = {};  // none
  Cursor* cursor;
  std::vector<Record>* page;

  size_t value_bytes() const { return 0; }
  // An attempt that failed may have filled the page in part.
  Task<bool> Start(fabric::Op& op, index::Index& index) const {
    page->clear();
    return index.Next(op, *cursor, *page);
  }
};

struct ScanRequest {
  using Answer = bool;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kScan;
  std::string_view key = {};  // none: the bounds of a range may be longer than any key
  const KeyRange* range;
  size_t limit;
  std::vector<Record>* page;

  size_t value_bytes() const { return 0; }
  // As above.
  Task<bool> Start(fabric::Op& op, index::Index& index) const {
    page->clear();
    return index.Scan(op, *range, limit, *page);
  }
};

struct LastRequest {
  using Answer = bool;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kScan;
  std::string_view key = {};  // none
  const KeyRange* range;
  Record* record;

  size_t value_bytes() const { return 0; }
  Task<bool> Start(fabric::Op& op, index::Index& index) const { return index.Last(op, *range, *record); }
};

struct StatsRequest {
  using Answer = TableStats;
  static constexpr fabric::OpKind kKind = fabric::OpKind::kMaintenance;
  std::string_view key = {};  // none

  size_t value_bytes() const { return 0; }
  Task<TableStats> Start(fabric::Op& op, index::Index& index) const { return index.Stats(op); }
};

}  // namespace farside::store
