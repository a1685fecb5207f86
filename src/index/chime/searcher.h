// Searching for a key: one trip if it is present (and one for its block, with keys=bytes), two if it is
// absent.
#pragma once

#include <cstdint>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/context.h"
#include "index/chime/hotspots.h"
#include "index/chime/leaf.h"
#include "index/chime/locator.h"
#include "index/chime/node_locks.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

struct SpeculationCounts {
  uint64_t searches = 0;
  uint64_t speculations = 0;  // searches whose key had a hotspot
  uint64_t hits = 0;          // speculations that found the key
};

class Searcher {
 public:
  Searcher(const TableContext& table, Hotspots& hotspots, Root& root, Locator& locator, BoundTexts& bounds,
           NodeLocks& locks)
      : table_(table), hotspots_(hotspots), root_(root), locator_(locator), bounds_(bounds), locks_(locks) {}

  // One attempt, under the search's pin. True: the key is present, and `search.value` is its value. It takes
  // effect when the line of the entry is sampled; of an absent key, at some moment between two READs of the
  // header (chime/4).
  Task<bool> TrySearch(SearchContext& search);

  const SpeculationCounts& counts() const { return counts_; }

 private:
  enum class Looked : uint8_t { kFound, kAbsent, kBeyond, kDead, kTorn };

  // READs the entry in which the key was found last. False: it is not there any more; it may be elsewhere.
  Task<bool> Speculate(SearchContext& search, Spot spot);
  // The header too, if the options say so; otherwise it is left as it is.
  Task<Done> ReadNeighbourhood(fabric::Op& op, NodePtr leaf, Neighbourhood& hood, Header& header);
  // READs the neighbourhood between two READs of the header: a key that is not found then is absent
  // (chime/4).
  Task<Looked> LookAgain(SearchContext& search, Neighbourhood& hood, Header& header);
  // After a look that decided nothing.
  Task<Done> GoOn(SearchContext& search, Looked looked, Header header);
  // True, and the value, if the key is in what was READ of the leaf; the hotspots get its place.
  Task<bool> FindValue(SearchContext& search, NodePtr leaf, const Neighbourhood& hood);

  const TableContext& table_;
  Hotspots& hotspots_;
  Root& root_;
  Locator& locator_;
  BoundTexts& bounds_;
  NodeLocks& locks_;
  SpeculationCounts counts_;
};

}  // namespace farside::index::chime
