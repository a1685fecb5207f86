// Cursors: a page is the records of one leaf, and the next page those of its sibling.
#pragma once

#include <vector>

#include "fabric/op.h"
#include "farside/record.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/leaf_reader.h"
#include "index/chime/locator.h"
#include "index/chime/record_reader.h"
#include "index/chime/root.h"

namespace farside::index::chime {

class CursorReader {
 public:
  CursorReader(Root& root, Locator& locator, BoundTexts& bounds, LeafReader& leaves, RecordReader& records)
      : root_(root), locator_(locator), bounds_(bounds), leaves_(leaves), records_(records) {}

  // One attempt, under a pin. False: there are no more records.
  Task<bool> Try(fabric::Op& op, Cursor& cursor, std::vector<Record>& page);

 private:
  // The leaf at which the cursor goes on.
  Task<NodePtr> LeafOf(fabric::Op& op, const Cursor& cursor);
  // The leaf that has the key, READ.
  Task<NodePtr> ReadLeafOf(fabric::Op& op, Key key, Leaf& leaf);

  Root& root_;
  Locator& locator_;
  BoundTexts& bounds_;
  LeafReader& leaves_;
  RecordReader& records_;
};

}  // namespace farside::index::chime
