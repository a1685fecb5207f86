// Finds the entry of a key among the entries that were READ of a leaf. With keys=bytes the blocks of the
// candidates decide, and the caller READs them, so that no coroutine stands between:
//
//   EntryFinder finder(table, target, hood);
//   while (finder.needs_block()) {
//     co_await op.InOrder(finder.BlockRead());
//     const Status taken = finder.TakeBlock();
//     if (!taken.ok()) co_return taken.error();
//   }
//   if (finder.found()) ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fabric/verb.h"
#include "farside/result.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/table_context.h"
#include "index/chime/target.h"
#include "index/kit/block_buffer.h"

namespace farside::index::chime {

class EntryFinder {
 public:
  // Both must stay until the end of the search.
  EntryFinder(const TableContext& table, const Target& target, const Neighbourhood& hood)
      : EntryFinder(table, target, hood, hood.size()) {}
  // Searches the first `end` entries only.
  EntryFinder(const TableContext& table, const Target& target, const Neighbourhood& hood, size_t end)
      : table_(table), target_(target), hood_(hood), end_(end) {
    FindCandidate(0);
  }
  EntryFinder(const EntryFinder&) = delete;
  EntryFinder& operator=(const EntryFinder&) = delete;

  bool needs_block() const { return block_bytes_ > 0; }
  fabric::ReadIntoVerb BlockRead();
  Status TakeBlock();

  bool found() const { return found_; }
  // Of the entry that was found. The value is a view of this finder.
  size_t slot() const { return hood_.SlotAt(index_); }
  const Entry& entry() const { return entry_; }
  std::string_view value() const { return value_; }
  uint64_t block_bytes() const { return block_.bytes().size(); }

 private:
  void FindCandidate(size_t from);

  const TableContext& table_;
  const Target& target_;
  const Neighbourhood& hood_;
  const size_t end_;
  size_t index_ = 0;
  Entry entry_;
  uint64_t block_bytes_ = 0;   // to READ of the candidate's block; 0: nothing
  bool reads_header_ = false;  // of a block whose size its reference does not have
  bool found_ = false;
  BlockBuffer block_;
  std::array<std::byte, 8> inline_value_;
  std::string_view value_;
};

}  // namespace farside::index::chime
