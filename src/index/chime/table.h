// A chime table as one client has it open: a B+ tree in far memory whose inner nodes clients cache, and whose
// leaves are hopscotch tables. A search READs one neighbourhood of a leaf. See docs/engines/chime.md.
//
// The parts below own their fields, and reach each other through their public functions only.
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
  Task<bool> TrySearch(SearchContext& search) { return searcher_.Try(search); }
  Task<Attempt> TryChange(ChangeContext& change) { return changer_.Try(change); }

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
