// A sephash table as one client has it open: the operations, and the collaborators that carry them out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/index.h"
#include "index/kit/keyed_index.h"
#include "index/kit/partitions.h"
#include "index/sephash/changer.h"
#include "index/sephash/closer.h"
#include "index/sephash/context.h"
#include "index/sephash/directory.h"
#include "index/sephash/merger.h"
#include "index/sephash/options.h"
#include "index/sephash/searcher.h"
#include "index/sephash/segment_reader.h"
#include "index/sephash/walker.h"
#include "pool/client.h"

namespace farside::index::sephash {

class Table final : public KeyedIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, std::span<const fabric::FarAddr> roots);

  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override {
    return walker_.Next(op, cursor, page);
  }
  Task<TableStats> Stats(fabric::Op& op) override { return walker_.Stats(op, merger_.counts()); }
  uint64_t growth() const override;
  Task<bool> UnlinkTouched(fabric::Op& op) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override { return walker_.Walk(op, reach); }
  Task<Done> Verify(fabric::Op& op) override { return walker_.Verify(op); }

  // What this client has merged and split.
  const MergeCounts& merge_counts() const { return merger_.counts(); }

 private:
  friend class KeyedIndex<Table>;
  ChangeContext ContextOf(fabric::Op& op, Change& change);
  SearchContext ContextOf(fabric::Op& op, std::string_view key, std::string& value);
  Task<Attempt> TryChange(ChangeContext& context) { return changer_.TryChange(context); }
  Task<bool> TrySearch(SearchContext& context) { return searcher_.TrySearch(context); }

  const Options options_;
  Partitions<Directory> directories_;
  SegmentReader reader_;
  Merger merger_;
  Closer closer_;
  Changer changer_;
  Searcher searcher_;
  Walker walker_;
};

}  // namespace farside::index::sephash

extern template class farside::index::KeyedIndex<farside::index::sephash::Table>;
