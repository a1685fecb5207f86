// Statistics of a table: what is in it, what it takes in far memory, and what the client remembers of it.
#pragma once

#include <cstdint>

#include "fabric/op.h"
#include "farside/record.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/hotspots.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/leaf_reader.h"
#include "index/chime/locator.h"
#include "index/chime/root.h"
#include "index/chime/searcher.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class StatsCollector {
 public:
  StatsCollector(const TableContext& table, Root& root, Locator& locator, InnerNodes& inner_nodes,
                 LeafReader& leaves, const BoundTexts& bounds, const Hotspots& hotspots,
                 const Searcher& searcher)
      : table_(table),
        root_(root),
        locator_(locator),
        inner_nodes_(inner_nodes),
        leaves_(leaves),
        bounds_(bounds),
        hotspots_(hotspots),
        searcher_(searcher) {}

  // One attempt, under a pin: looks through the whole table.
  Task<TableStats> Try(fabric::Op& op);

 private:
  struct Counts {
    uint64_t leaves = 0;
    uint64_t inner_nodes = 0;
    uint32_t levels = 0;
  };

  Task<Done> CountInnerNodes(fabric::Op& op, Counts& counts);
  Task<Done> CountLeaves(fabric::Op& op, Counts& counts, TableStats& stats);
  void AddDetails(const Counts& counts, TableStats& stats) const;

  const TableContext& table_;
  Root& root_;
  Locator& locator_;
  InnerNodes& inner_nodes_;
  LeafReader& leaves_;
  const BoundTexts& bounds_;
  const Hotspots& hotspots_;
  const Searcher& searcher_;
};

}  // namespace farside::index::chime
