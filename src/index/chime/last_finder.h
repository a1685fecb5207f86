// The greatest key of a range: from the right end of the range to the left, leaf by leaf, while leaves are
// empty.
#pragma once

#include "fabric/op.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/key.h"
#include "index/chime/leaf_reader.h"
#include "index/chime/locator.h"
#include "index/chime/record_reader.h"
#include "index/chime/root.h"

namespace farside::index::chime {

class LastFinder {
 public:
  LastFinder(Root& root, Locator& locator, InnerNodes& inner_nodes, BoundTexts& bounds, LeafReader& leaves,
             RecordReader& records)
      : root_(root),
        locator_(locator),
        inner_nodes_(inner_nodes),
        bounds_(bounds),
        leaves_(leaves),
        records_(records) {}

  // One attempt, under a pin. False: the range is empty.
  Task<bool> Try(fabric::Op& op, const KeyRange& range, Record& record);

 private:
  // The leaf that has the keys right below a bound, as far as inner nodes tell, or a leaf to the left of it.
  // `low`: the lower bound of its range.
  Task<Position> FindBelow(fabric::Op& op, const Bound& upper, Bound& low);
  // READs the leaf that has the keys right below the bound.
  Task<Done> ReadBelow(fabric::Op& op, const Bound& upper, Leaf& leaf, Bound& low);

  Root& root_;
  Locator& locator_;
  InnerNodes& inner_nodes_;
  BoundTexts& bounds_;
  LeafReader& leaves_;
  RecordReader& records_;
};

}  // namespace farside::index::chime
