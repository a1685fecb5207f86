// A chime table as one client has it open: a B+ tree in far memory whose inner nodes clients cache, and whose
// leaves are hopscotch tables. A search READs one neighbourhood of a leaf. The invariants are in chime.h.
//
// The parts below own their fields, and reach each other through their public functions only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/changer.h"
#include "index/chime/context.h"
#include "index/chime/cursor_reader.h"
#include "index/chime/entry_mover.h"
#include "index/chime/hotspots.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/last_finder.h"
#include "index/chime/leaf_merger.h"
#include "index/chime/leaf_reader.h"
#include "index/chime/leaf_splitter.h"
#include "index/chime/locator.h"
#include "index/chime/node_locks.h"
#include "index/chime/options.h"
#include "index/chime/pivot_inserts.h"
#include "index/chime/record_reader.h"
#include "index/chime/recovery.h"
#include "index/chime/root.h"
#include "index/chime/scanner.h"
#include "index/chime/searcher.h"
#include "index/chime/stats_collector.h"
#include "index/chime/table_context.h"
#include "index/chime/verifier.h"
#include "index/chime/walker.h"
#include "index/index.h"
#include "index/kit/change.h"
#include "index/kit/context.h"
#include "index/kit/keyed_index.h"
#include "pool/client.h"

namespace farside::index::chime {

class Table final : public KeyedIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, const std::vector<fabric::FarAddr>& roots);

  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override;
  Task<bool> Scan(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) override;
  Task<bool> Last(fabric::Op& op, const KeyRange& range, Record& record) override;
  Task<TableStats> Stats(fabric::Op& op) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override;
  Task<Done> Verify(fabric::Op& op) override;

 private:
  friend class KeyedIndex<Table>;
  // Of one pin: a change that meets splits, or follows siblings, knows where to go on.
  static constexpr int kEagerAttempts = 1000;

  Status CheckKey(std::string_view key) const;
  Status CheckChange(const Change& change) const;
  SearchContext ContextOf(fabric::Op& op, std::string_view key, std::string& value) {
    return SearchContext(context_, hotspots_, op, key, value);
  }
  ChangeContext ContextOf(fabric::Op& op, Change& change) {
    return ChangeContext(context_, hotspots_, pivot_inserts_, op, change);
  }
  Task<bool> TrySearch(SearchContext& search) { return searcher_.TrySearch(search); }
  Task<Attempt> TryChange(ChangeContext& change) { return changer_.TryChange(change); }

  // Calls `attempt` under a pin until it is not contended; between two attempts the operation waits without a
  // pin.
  template <class T, class Attempt>
  Task<T> Retry(fabric::Op& op, Attempt attempt);
  template <class T, class Attempt>
  Task<T> Pinned(fabric::Op& op, Attempt attempt);

  const TableContext context_;
  BoundTexts bounds_;
  InnerNodes inner_nodes_;
  Hotspots hotspots_;
  Root root_;
  NodeLocks locks_;
  LeafReader leaves_;
  RecordReader records_;
  Recovery recovery_;
  Locator locator_;
  PivotInserts pivot_inserts_;
  Searcher searcher_;
  EntryMover mover_;
  LeafSplitter splitter_;
  InnerMerger inner_merger_;
  LeafMerger merger_;
  Changer changer_;
  Scanner scanner_;
  LastFinder last_finder_;
  CursorReader cursor_reader_;
  StatsCollector stats_collector_;
  Verifier verifier_;
  Walker walker_;
};

}  // namespace farside::index::chime

extern template class farside::index::KeyedIndex<farside::index::chime::Table>;
