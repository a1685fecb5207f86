// What a change READs of a leaf in the trip that takes the leaf's lock, so it is as it is under the lock.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "fabric/verb.h"
#include "index/chime/context.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class LeafUnderLock {
 public:
  // The leaf is that of the change's position. If the change has a hotspot, one entry is READ, and no header:
  // under the lock a key stands in one slot only (chime/3).
  LeafUnderLock(const TableContext& table, const ChangeContext& change);
  LeafUnderLock(const LeafUnderLock&) = delete;
  LeafUnderLock& operator=(const LeafUnderLock&) = delete;

  // To be done in the trip that takes the lock,
  std::span<const fabric::ReadIntoVerb> reads() const { return reads_; }
  // and behind that trip.
  void TakeReads();

  NodePtr at() const { return at_; }
  bool is_guess() const { return hood_.is_guess(); }
  const Header& header() const { return header_; }
  const Neighbourhood& hood() const { return hood_; }
  // All lines behind the header, if the options say that changes READ whole leaves; otherwise empty.
  std::span<const std::byte> lines() const;

 private:
  const NodePtr at_;
  Header header_{};
  Neighbourhood hood_;
  std::vector<std::byte> whole_;
  std::array<fabric::ReadIntoVerb, 3> verbs_;
  std::span<const fabric::ReadIntoVerb> reads_;
};

}  // namespace farside::index::chime
