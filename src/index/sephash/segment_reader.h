// Reading segments: looks at CurSegments, and the parts of MainSegments that an operation needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/sephash/directory.h"
#include "index/sephash/look.h"
#include "index/sephash/main_segment.h"
#include "index/sephash/options.h"
#include "index/sephash/segment.h"
#include "pool/client.h"

namespace farside::index::sephash {

// Some entries of a MainSegment; on the heap only if they are many.
class MainRange {
 public:
  std::span<std::byte> Resize(EntryRange range) {
    range_ = range;
    if (range.size() > small_.size()) large_.resize(range.size());
    return std::as_writable_bytes(Words());
  }
  EntryRange range() const { return range_; }
  std::span<const Entry> entries() const { return const_cast<MainRange*>(this)->Words(); }
  // Whether all entries with this fingerprint are among them, if the MainSegment has `all` entries.
  bool HasAllOf(uint8_t fp, uint32_t all) const {
    const std::span<const Entry> read = entries();
    if (range_.size() == all) return true;
    return !read.empty() && (range_.first == 0 || read.front().fp() < fp) &&
           (range_.end == all || read.back().fp() > fp);
  }

 private:
  std::span<Entry> Words() {
    if (range_.size() > small_.size()) return std::span(large_).first(range_.size());
    return std::span(small_).first(range_.size());
  }
  EntryRange range_;
  std::array<Entry, 96> small_;
  std::vector<Entry> large_;
};

// What stands before the entries of a MainSegment.
struct MainHead {
  FpTable table;
  std::array<FilterLine, kFilterLines> filter;
};
inline bool IsSet(const FilterLine& line, uint8_t fp) { return line.bytes[fp % FilterLine::kBytes] != 0; }

// All that decides about a key: its segment as it was at one moment.
struct View {
  Look look;
  MainRange main;  // of the MainSegment that the look names: all entries with the key's fingerprint
};

class SegmentReader {
 public:
  SegmentReader(const Options& options, pool::PoolClient& pool) : options_(options), pool_(pool) {}

  // The first `slots` entries of a CurSegment, as they were in one round; one trip, which takes `along`
  // another READ.
  Task<Done> ReadLook(fabric::Op& op, const Segment& segment, uint32_t slots, Look& look,
                      const fabric::ReadIntoVerb* along = nullptr);
  // How many entries a put reads.
  uint32_t Window(const Segment& segment) const;

  // A look, and what stands in the MainSegment: one trip, if the client remembers the MainSegment.
  Task<Done> ReadView(fabric::Op& op, Segment& segment, uint8_t fp, View& view);
  // The MainSegment is one that a meta word names which this operation has read; so for those below.
  // What stands before its entries.
  Task<MainHead> ReadHead(fabric::Op& op, Segment& segment, MetaWord meta);
  Task<Done> ReadRange(fabric::Op& op, fabric::FarAddr main, const FpTable& table, uint8_t fp,
                       MainRange& range);
  // Goes on reading until the range has all entries with this fingerprint, of a MainSegment with `all`.
  Task<Done> CompleteRange(fabric::Op& op, fabric::FarAddr main, uint32_t all, uint8_t fp, MainRange& range);
  // All of a MainSegment.
  Task<MainContent> ReadMain(fabric::Op& op, const Segment& segment, MetaWord meta);

  // kCorrupt if the segment cannot say this of itself.
  Status Check(const Segment& segment, const SegmentHeader& header) const;
  // This client has just made a MainSegment, or read it.
  void Remember(Segment& segment, uint64_t main, uint64_t merges, const Starts& starts, uint32_t entries);

  static fabric::FarAddr MainOf(const Segment& segment, MetaWord meta) {
    return fabric::FarAddr(segment.at.node, meta.main());
  }

 private:
  // Whether a MainSegment of so many bytes can be: on its node, and as its CurSegment says.
  bool CanBe(const Segment& segment, MetaWord meta, uint64_t bytes) const;

  const Options& options_;
  pool::PoolClient& pool_;
};

}  // namespace farside::index::sephash
