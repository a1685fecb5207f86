// The chime engine: tables whose keys are in order, after "CHIME: A Cache-Efficient and High-Performance
// Hybrid Index on Disaggregated Memory" (SOSP 2024). See docs/engines/chime.md; the table itself is in
// table.h.
//
// Invariants
//   chime/1  An entry is whole: it lies in one line and is written at once. What a search finds in a leaf was
//            the key's value when its line was sampled.
//   chime/2  Only the holder of its lock changes a node. A client takes the lock over only from an owner that
//            is gone (pool/2), and brings a leaf to rest before any other client changes it.
//   chime/3  A key stands in one slot of its neighbourhood, in one leaf. While its leaf is locked it may
//            stand in two, with the same value: it is written where it goes before it is cleared where it
//            was.
//   chime/4  `moves` of a leaf is odd while entries change their place or leave, and is another number
//            afterwards. So a key that is not found between two READs of one even number was absent at some
//            moment between them.
//   chime/5  A new leaf is complete before the old one names it, and clients go from the old to the new one
//            only when the old one is at rest: it has cleared the entries that left. So a copy that stays
//            behind is never outdated.
//   chime/6  Keys move to the right only, and never below a pivot. So from a node that has or had the key,
//            siblings lead to it, as long as the key is not below the node's fence; from a dead leaf, its
//            heir does.
//   chime/7  A pivot of an inner node counts if it is below the node's fence. A pivot that is missing in a
//            parent is inserted by the client that had to follow a sibling although it had just READ the
//            parent.
//   chime/8  What a client remembers can be out of date, but is still memory of this table. Inner nodes are
//            freed with the table only; a leaf is retired when no node names it and `merges` was raised
//            since. An operation under a newer epoch than any before READs `merges`, and if it has grown the
//            client forgets what it remembers.
//   chime/9  A dead leaf has an heir and no entries, and is never changed again. As long as the leaf before
//            it, or its parent, names it, the lock of that node is held by the merging client, alive or dead.
//   chime/10 An operation that has to wait for long gives up its pin, and begins anew from the root; and only
//            if no catalog has changed since it began (retry_policy.h).
//   chime/11 With keys=inline, no leaf has keys of both halves, below 2^63 and from there on, and no parent
//            of leaves has: the first two have a fence between them, and nodes only get smaller, but for
//            merges under one parent. So the way to a key never leads to a leaf of the other half, and the
//            fence of any leaf tells which half it has.
//   chime/13 A lock is handed over inside a client when the trip of the change has completed, with the leaf
//            at rest, and a bounded number of times in a row (leaf_turn.h).
//   chime/14 The lock of a leaf counts its splits and merges; a client that takes it over always raises the
//            count. So the count that was READ in one line with a fence proves that fence, and that the leaf
//            is not dead. Counts are forgotten with the inner nodes (chime/8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/chime/layout.h"
#include "index/chime/options.h"
#include "index/index.h"
#include "pool/client.h"

namespace farside::index::chime {

class ChimeEngine final : public Engine {
 public:
  explicit ChimeEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "chime"; }
  Traits traits() const override;
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override;
  OptionMap recorded_options() const override { return options_.Recorded(); }
  std::vector<OptionMap> stress_options() const override;
  std::map<std::string, OptionMap> conformance_options() const override;
  OptionMap OptionsFor(const ExpectedRecords& expected) const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeChimeEngine(const OptionMap& options);

}  // namespace farside::index::chime
