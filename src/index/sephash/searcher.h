// Searching a key: one trip for the index, one for the block.
#pragma once

#include <cstdint>
#include <optional>

#include "farside/task.h"
#include "index/sephash/closer.h"
#include "index/sephash/context.h"
#include "index/sephash/options.h"
#include "index/sephash/segment.h"
#include "index/sephash/segment_reader.h"

namespace farside::index::sephash {

class Searcher {
 public:
  Searcher(const Options& options, SegmentReader& reader, Closer& closer)
      : options_(options), reader_(reader), closer_(closer) {}

  // One attempt.
  Task<bool> TrySearch(SearchContext& context);

 private:
  // What a search knows of a segment before it looks at the CurSegment.
  struct Known {
    SegmentHeader header;
    bool has_main = false;  // the rest is set
    bool filter = true;     // the CurSegment may have the key
    MainRange main;
  };

  // One trip if the client remembers the MainSegment that is there.
  Task<Done> ReadKnown(const KeyAccess& at, Segment& segment, Known& known);
  Task<Done> ReadRemembered(const KeyAccess& at, const Segment& segment, Known& known);
  // The client does not remember the MainSegment that is there.
  Task<Done> ReadMain(const KeyAccess& at, Segment& segment, Known& known);
  // The filter says that the CurSegment may have the key. Empty: the segment was merged meanwhile.
  Task<std::optional<bool>> SearchBoth(SearchContext& context, Segment& segment, Known& known);
  Task<bool> SearchMain(SearchContext& context, uint32_t depth, const MainRange& main);
  Task<bool> SearchView(SearchContext& context, const View& view);

  const Options& options_;
  SegmentReader& reader_;
  Closer& closer_;
};

}  // namespace farside::index::sephash
