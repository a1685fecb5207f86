// What a change READs of a leaf in the trip that takes the leaf's lock, so it is as it is under the lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/verb.h"
#include "index/chime/context.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class LeafUnderLock {
 public:
  // The leaf is that of the change's position. If the change has a hotspot, one entry is READ, and no header:
  // under the lock a key stands in one slot only (chime/3). No header either if the position has the count of
  // the leaf, and `trusts_count`. If the header is READ, and an insert is expected, the whole leaf comes
  // along: that is fewer READs, and there may be no room in the neighbourhood.
  LeafUnderLock(const TableContext& table, const ChangeContext& change, bool trusts_count,
                bool expects_insert);
  LeafUnderLock(const LeafUnderLock&) = delete;
  LeafUnderLock& operator=(const LeafUnderLock&) = delete;

  // What the client thinks that the lock is.
  NodeLock hint() const { return NodeLock(NodeLock::Count::Set(0, count_.value_or(0))); }
  // Whether the count that is remembered is not that of the lock. Empty: none is remembered, or needed.
  std::optional<bool> IsStale(NodeLock held) const {
    if (!count_.has_value() || hood_.is_guess()) return std::nullopt;
    return held.count() != *count_;
  }
  // The lock is held, with this word: what is still to be READ. `has_reads`: `reads` are done.
  std::span<const fabric::ReadIntoVerb> MissingReads(NodeLock held, bool has_reads);
  // Of a leaf whose lock is handed over with this word: as little as proves what there is.
  void ReadLess(NodeLock held);

  // To be done in the trip that takes the lock,
  std::span<const fabric::ReadIntoVerb> reads() const { return reads_; }
  // and behind that trip.
  void TakeReads();

  NodePtr at() const { return at_; }
  bool is_guess() const { return hood_.is_guess(); }
  bool has_header() const { return has_header_; }
  const Header& header() const { return header_; }
  const Neighbourhood& hood() const { return hood_; }
  // All lines behind the header, if the whole leaf was READ; otherwise empty.
  std::span<const std::byte> lines() const;

 private:
  // INVARIANT chime/14: whether the word of the lock does not prove that the leaf is as it is remembered.
  // Then the header has to be READ under the lock.
  bool LacksHeader(NodeLock held) const {
    return !has_header_ && !hood_.is_guess() && held.count() != count_;
  }
  // From now on it is among the READs.
  void AddHeader();

  const NodePtr at_;
  const std::optional<uint32_t> count_;
  bool has_header_ = true;
  Header header_{};
  Neighbourhood hood_;
  std::array<fabric::ReadIntoVerb, 3> verbs_;
  std::span<const fabric::ReadIntoVerb> reads_;
  const bool always_whole_;          // the options say so
  std::span<std::byte> whole_ = {};  // of `room_`; empty: READs of parts of the leaf
  std::array<std::byte, (1 + kMostLeafLines) * pool::kLine> room_;
};

}  // namespace farside::index::chime
