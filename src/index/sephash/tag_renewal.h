// Renewing tags: entries whose tags are of the group before get tags of the present group, which follow from
// the hashes in their blocks.
//
//   sephash/8  The tags of a segment's entries are of the group of its depth, or of the group before. Each
//              merge renews a few, along with blocks that it reads anyway; a split that ends a group renews
//              all that are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/sephash/context.h"
#include "index/sephash/layout.h"

namespace farside::index::sephash {

// Of some entries of a MainSegment: the READs of their hashes go along with other READs.
class TagRenewal {
 public:
  // Up to `most` of the entries whose tags are of the group before that of the depth.
  TagRenewal(const Access& at, uint32_t depth, std::span<const Entry> main, size_t most);

  void AddReads(const Access& at, fabric::Batch& reads);
  // When they have ended: those of the entries that are among these get tags of the group of the depth.
  Status Apply(const Access& at, std::vector<Entry>& entries) const;

 private:
  const Shape& shape_;
  const uint32_t group_;
  std::vector<Entry> old_;
  std::vector<uint64_t> hashes_;  // of their keys
};

// Renews all tags that are not of this group.
Task<Done> RenewTags(Access at, uint32_t group, std::vector<Entry>& entries);

// The hashes of the keys that these entries are of, by as many READs.
Task<std::vector<uint64_t>> ReadHashes(Access at, std::span<const Entry> entries);

}  // namespace farside::index::sephash
