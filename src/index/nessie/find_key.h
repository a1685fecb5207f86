// What the slots of a key have for it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/nessie/item.h"
#include "index/nessie/layout.h"
#include "index/nessie/partition.h"
#include "index/nessie/trail.h"

namespace farside::index::nessie {

// The item of the key in one of its slots, if there is one.
struct Entry {
  bool is_there = false;
  Word word;  // live or pending
  Item item;  // a view of the bytes that were read

  bool is_live() const { return is_there && word.is(Kind::kLive); }
  bool is_pending() const { return is_there && word.is(Kind::kPending); }
  // A pending one counts with the value before it, if there is one.
  bool contributes() const { return is_live() || (is_pending() && item.replaced.is(Kind::kLive)); }
};

class Entries {
 public:
  Entry& of(Candidate candidate) { return entries_[static_cast<size_t>(candidate)]; }
  const Entry& of(Candidate candidate) const { return entries_[static_cast<size_t>(candidate)]; }

  // READs the items of the key that the look names: one trip, or none if no tag is the key's. Claims do not
  // count.
  Task<Done> Find(fabric::Op& op, const Partition& part, const KeyHash& hash, std::string_view key,
                  const Look& look);

 private:
  std::array<Entry, kCandidates> entries_;
  std::array<ItemRead, kMostItemReads> reads_;
};

}  // namespace farside::index::nessie
