// Records from the entries of leaves that were READ; with keys=bytes from the blocks that the entries name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/op.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/task.h"
#include "index/chime/leaf.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

// A used entry on its way to a record.
struct Item {
  uint64_t prefix = 0;
  uint64_t value = 0;
};

class RecordReader {
 public:
  explicit RecordReader(const TableContext& table) : table_(table) {}

  // Appends the leaf's entries that may be in the range, ordered by prefix.
  void Collect(const Leaf& leaf, const KeyRange& range, std::vector<Item>& items) const;
  // In the order of the items.
  Task<std::vector<Record>> Read(fabric::Op& op, std::span<const Item> items) const;
  // Appends those of the items that are in the range, ascending, `limit` at most. True: there were more.
  Task<bool> Append(fabric::Op& op, const KeyRange& range, std::vector<Item> items, size_t limit,
                    std::vector<Record>& page) const;

 private:
  static Record InlineRecord(const Item& item);
  static bool AppendInline(const KeyRange& range, std::span<const Item> items, size_t limit,
                           std::vector<Record>& page);

  const TableContext& table_;
};

}  // namespace farside::index::chime
