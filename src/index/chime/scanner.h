// Scans: leaves are READ whole, several at once, and a leaf counts if it was at rest.
//
// What a scan says of a key was true when its slot was sampled; of an absent key, at some moment between the
// two READs of the leaf's header (chime/4). The range of a leaf begins at the fence of the leaf before it. So
// if each leaf that is taken is the sibling of the one before, no key is left out, and none comes twice.
#pragma once

#include <cstddef>
#include <vector>

#include "fabric/op.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/layout.h"
#include "index/chime/leaf_reader.h"
#include "index/chime/locator.h"
#include "index/chime/record_reader.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class Scanner {
 public:
  Scanner(const TableContext& table, Locator& locator, InnerNodes& inner_nodes, BoundTexts& bounds,
          LeafReader& leaves, RecordReader& records)
      : table_(table),
        locator_(locator),
        inner_nodes_(inner_nodes),
        bounds_(bounds),
        leaves_(leaves),
        records_(records) {}

  // One attempt, under a pin. Appends the records of the range, ascending, `limit` at most. True: there may
  // be more. If it fails, it may have appended some.
  Task<bool> Try(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page);

 private:
  // Where a scan stands.
  struct Progress;

  // Where a scan begins.
  Task<Position> Begin(fabric::Op& op, const Progress& scan);
  // Whether the leaf is one of the first ones, as far as the client knows.
  bool IsOfFront(NodePtr leaf) const;
  // The leaf of the position and those behind it, as far as cached parents tell; so many at most.
  std::vector<NodePtr> LeavesAhead(const Position& position, size_t wanted) const;
  // Remembers whether the leaf at which the scan began had no records.
  void NoteFront(const Progress& scan, const std::vector<Item>& items);
  // Enough leaves for so many records.
  size_t LeavesFor(size_t records) const;
  // READs so many.
  Task<Done> ReadAhead(fabric::Op& op, Progress& scan, size_t records);
  // Whether the leaf of the position has the first key of the range. If not, the position moves towards it.
  Task<bool> Arrive(fabric::Op& op, Progress& scan);
  // Collects from those leaves READ ahead that count, until there are `wanted` items.
  Task<std::vector<Item>> TakeLeaves(fabric::Op& op, const KeyRange& range, Progress& scan, size_t wanted);
  // Whether the range ends at the fence or before it.
  Task<bool> EndsAtFence(fabric::Op& op, const KeyRange& range, Header header, uint64_t clears);
  // The inner node that names the next leaf, which follows those of the parent that led here; null if it is
  // not known, and the front tells what follows. A guess: whether the leaves that it names are the siblings
  // shows when they are READ.
  Task<NodePtr> ParentOfNext(fabric::Op& op, const Progress& scan);

  const TableContext& table_;
  Locator& locator_;
  InnerNodes& inner_nodes_;
  BoundTexts& bounds_;
  LeafReader& leaves_;
  RecordReader& records_;
  // The last leaf at which a scan began in vain: the first one of a queue (inner_merger.h). The next scan
  // that begins there READs the leaves behind it at once. A guess, which is never followed.
  NodePtr empty_front_;
};

}  // namespace farside::index::chime
