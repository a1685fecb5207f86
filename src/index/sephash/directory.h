// The directory of one node of a table, as one client knows it: which segment has the keys of a hash.
//
// A segment says itself which keys it has: the suffix, and as many bits of it as the depth in its meta word.
// So a directory that is out of date costs trips and nothing else, and no client has to be told of a split.
//
//   sephash/11  A client that finds a segment whose first bit that differs from the key's hash is j: if j is
//               the last bit that counts, the MainSegment names the sibling that the same commit has made, or
//               else the directory does; if not, the directory does.
//   sephash/12  The entry of a sibling is made before the next merge of its segment commits.
//   sephash/13  A segment has one entry in the directory, at its suffix, by a CAS from empty, after the
//               commit that makes it. The part that the entry stands in is made, empty, before that commit:
//               so the directory doubles without a copy, and no client finds half of it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/sephash/layout.h"
#include "index/sephash/options.h"
#include "index/sephash/segment.h"
#include "pool/client.h"

namespace farside::index::sephash {

class Directory {
 public:
  Directory(const Options& options, pool::PoolClient& pool, fabric::FarAddr root)
      : shape_(options.shape), pool_(pool), root_(root) {}

  fabric::NodeId node() const { return root_.node; }
  fabric::FarAddr root() const { return root_; }
  const Shape& shape() const { return shape_; }

  // Reads all of it, once.
  bool known() const { return !routes_.empty(); }
  Task<Done> Load(fabric::Op& op);

  // The segment that has the keys of this hash, as far as this client knows.
  Segment& Find(uint64_t hash) { return *segments_[routes_[hash & (routes_.size() - 1)]]; }
  // The meta word shows that the segment does not have the keys of this hash: learns which one has. With
  // `completes`, it also makes the entry of a sibling that has none yet.
  Task<Done> Follow(fabric::Op& op, const Segment& segment, MetaWord meta, uint64_t hash,
                    bool completes = true);
  // How often an operation follows before it gives up: the splits that a client may have missed, and more.
  static constexpr int kMostSteps = 2 * kMostDepth;

  // ---- for splits
  // Makes the part in which the siblings of this depth have their entries.
  Task<Done> MakePart(fabric::Op& op, uint32_t depth);
  // Makes the entry of the segment with this suffix; it may be there already.
  Task<Done> Complete(fabric::Op& op, uint64_t suffix, uint64_t segment);
  // The same, without waiting for it.
  void CompleteLater(fabric::Op& op, uint64_t suffix, uint64_t segment);
  // The entry of the segment is there, as far as this client knows; or the segment is known otherwise.
  // False: it was known before.
  bool Learn(uint64_t segment, uint64_t suffix, uint32_t depth);
  // A segment that another one names.
  Segment& Know(uint64_t segment, uint64_t suffix);

  // ---- for the walker
  Task<Root> ReadRoot(fabric::Op& op);
  // Of the deepest segment that is known.
  uint32_t depth() const { return known() ? std::countr_zero(routes_.size()) : shape_.initial_bits; }
  uint64_t bytes() const;  // of this client

 private:
  fabric::FarAddr PartSlot(size_t part) const;
  fabric::FarAddr EntryOf(uint64_t suffix) const;
  void Forget();
  // Takes over what the root says of the parts.
  Status TakeParts(const Root& root);
  // Reads the root if this client does not know the part yet. kCorrupt if there is none.
  Task<Done> KnowPart(fabric::Op& op, size_t part);

  const Shape shape_;
  pool::PoolClient& pool_;
  const fabric::FarAddr root_;
  std::array<uint64_t, kMostParts> parts_{};  // offsets; 0: not known
  std::vector<std::unique_ptr<Segment>> segments_;
  std::unordered_map<uint64_t, uint32_t> by_offset_;
  std::vector<uint32_t> routes_;  // by the lowest bits of the hash: numbers of segments. A power of two
};

}  // namespace farside::index::sephash
