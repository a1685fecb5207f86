// The sephash table: an extendible hash table in far memory whose segments have two levels, after "SepHash: A
// Write-Optimized Hash Index On Disaggregated Memory via Separate Segment Structure" (PVLDB 17(5), 2024).
// Changes append to a small CurSegment by one CAS; full ones are merged in bulk into a large, sorted
// MainSegment that never changes. There are no locks. See docs/engines/sephash.md.
//
// Invariants
//   sephash/1  A look at a CurSegment is one READ, whose entries are of one round (look.h).
//   sephash/2  A change appends to the first free slot, by a CAS of the word that was seen there. All lower
//              slots were seen with entries of the round: so the CAS proves that nothing was appended since
//              the look (changer.h).
//   sephash/3  A block is retired only when no slot of a CurSegment names it: what a merge drops of its round
//              is listed in the new MainSegment, and retired by the next merge; and a segment that a split
//              has made retires nothing before the old segment was merged once more. So the word that a CAS
//              expects does not come back while the operation holds its pin.
//   sephash/4  Words that pad a round are unique: they have the count of merges.
//   sephash/5  A MainSegment is named by its address and its count of merges. A search by a remembered one
//              samples the meta word first, then the count and the filter, then the entries.
//   sephash/6  A byte of the filter is set before the entry is appended, in the MainSegment that the look
//              names; no such byte is ever cleared.
//   sephash/7  A merge or a split is committed by one CAS on the meta word, which changes epoch, depth and
//              MainSegment; the MainSegment of a split names the sibling (merger.h).
//   sephash/8  The tags of a segment's entries are of the group of its depth, or of the group before; those
//              of the round are of the group of its depth.
//   sephash/9  The client whose CAS has committed a merge retires what it has replaced, and no other client.
//   sephash/10 A key is appended only to a segment whose look covers its hash.
//   sephash/11 ... sephash/13 are those of the directory (directory.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/index.h"
#include "index/sephash/layout.h"
#include "index/sephash/options.h"

namespace farside::index::sephash {

class SephashEngine final : public Engine {
 public:
  explicit SephashEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "sephash"; }
  Traits traits() const override { return {.read_only_walk = true, .grows_by_nodes = true}; }
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override;
  OptionMap recorded_options() const override { return options_.Recorded(); }
  std::vector<OptionMap> stress_options() const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeSephashEngine(const OptionMap& options);

}  // namespace farside::index::sephash
