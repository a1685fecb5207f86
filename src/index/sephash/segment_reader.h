// Reading segments: looks at CurSegments, and the parts of MainSegments that an operation needs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/kit/tendency.h"
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
  void Resize(EntryRange range) {
    range_ = range;
    if (range.size() > small_.size()) large_.resize(range.size());
  }
  EntryRange range() const { return range_; }
  std::span<const Entry> entries() const { return const_cast<MainRange*>(this)->entries(); }
  std::span<Entry> entries() {
    if (range_.size() > small_.size()) return std::span(large_).first(range_.size());
    return std::span(small_).first(range_.size());
  }
  // Whether all entries with this fingerprint are among them, if the MainSegment has `all` entries.
  bool HasAllOf(uint8_t fp, uint32_t all) const {
    const std::span<const Entry> read = entries();
    if (range_.size() == all) return true;
    return !read.empty() && (range_.first == 0 || read.front().fp() < fp) &&
           (range_.end == all || read.back().fp() > fp);
  }

 private:
  EntryRange range_;
  std::array<Entry, 96> small_;
  std::vector<Entry> large_;
};

// All that decides about a key: its segment as it was at one moment.
struct View {
  Look look;
  MainRange main;  // of the MainSegment that the look names: all entries with the key's fingerprint
  uint32_t main_entries = 0;  // all that it has
};

class SegmentReader {
 public:
  SegmentReader(const Options& options, pool::PoolClient& pool) : options_(options), pool_(pool) {}

  // ---- CurSegments
  // The first `slots` entries, as they were in one round; one trip, which takes `along` another READ.
  Task<Done> ReadLook(fabric::Op& op, const Segment& segment, uint32_t slots, Look& look,
                      const fabric::ReadIntoVerb* along = nullptr);
  // How many entries a put reads.
  uint32_t Window(const Segment& segment) const {
    return options_.window == 0 || missed_.Expects() ? options_.shape.entries : Narrow(segment);
  }
  // A look of a put found so many entries of the round.
  void NoteUsed(Segment& segment, uint32_t used) {
    missed_.Note(used >= Narrow(segment) && used < options_.shape.entries);
    segment.free_slot = used;
  }
  // kCorrupt if the segment cannot say this of itself.
  Status CheckHeader(const Segment& segment, const SegmentHeader& header) const;

  // ---- MainSegments that a meta word names which this operation has read
  static fabric::FarAddr MainOf(const Segment& segment, MetaWord meta) {
    return fabric::FarAddr(segment.at.node, meta.main());
  }
  Task<MainHead> ReadHead(fabric::Op& op, const Segment& segment, MetaWord meta);
  // That of a spare one.
  Task<MainHead> ReadSpare(fabric::Op& op, fabric::FarAddr at);
  // All of it.
  Task<MainContent> ReadMain(fabric::Op& op, const Segment& segment, MetaWord meta);

  // The latest one that this client knows of becomes this one.
  std::shared_ptr<const KnownMain> Remember(Segment& segment, fabric::FarAddr at, const MainHead& head);
  // Adds the READs of a range to a trip.
  template <class Batch>
  void AddReads(Batch& trip, const KnownMain& main, MainRange& range) const {
    ForEachPiece(main, range, [&trip](fabric::FarAddr at, std::span<std::byte> into) {
      trip.Add(fabric::Read(at, into));
    });
  }
  // How many READs that would be: more than one if the range stands in several pages.
  size_t Pieces(EntryRange range) const;
  // So many at most go along with the READ of a meta word; more are read by trips of their own.
  static constexpr size_t kPiecesAlong = 4;
  Task<Done> ReadRange(fabric::Op& op, const KnownMain& main, uint8_t fp, MainRange& range);
  // Goes on reading until the range has all entries with this fingerprint.
  Task<Done> CompleteRange(fabric::Op& op, const KnownMain& main, uint8_t fp, MainRange& range);

  // ---- both
  // One trip, if the client remembers the MainSegment that is there.
  Task<Done> ReadView(fabric::Op& op, Segment& segment, uint8_t fp, View& view);

 private:
  template <class Do>
  void ForEachPiece(const KnownMain& main, MainRange& range, Do act) const {
    const uint64_t words = options_.shape.page_words();
    const std::span<std::byte> into = std::as_writable_bytes(range.entries());
    for (uint64_t first = range.range().first; first < range.range().end;) {
      const uint64_t end = std::min<uint64_t>((first / words + 1) * words, range.range().end);
      const fabric::FarAddr page(main.at.node, PageOffset(main.pages[first / words]));
      act(page + first % words * sizeof(Entry),
          into.subspan((first - range.range().first) * sizeof(Entry), (end - first) * sizeof(Entry)));
      first = end;
    }
  }
  // As much as is worth reading if the free slot is near to where it was.
  uint32_t Narrow(const Segment& segment) const {
    return std::min(options_.shape.entries, segment.free_slot + options_.window);
  }
  uint64_t PageOffset(uint32_t number) const { return uint64_t{number} * options_.shape.page_bytes(); }
  // With another READ, if there is one.
  Task<Done> ReadPages(fabric::Op& op, fabric::NodeId node, std::vector<uint32_t> pages,
                       std::span<std::byte> into, std::optional<fabric::ReadIntoVerb> along);
  Task<Done> ReadPieces(fabric::Op& op, const KnownMain& main, MainRange& range);
  enum class Valid : uint8_t { kNothing, kLook, kView };  // what of a view is valid
  Task<Valid> TryReadView(fabric::Op& op, Segment& segment, uint8_t fp, View& view);
  // Whether a MainSegment with so many pages can be on its node.
  bool CanBe(const Segment& segment, MetaWord meta) const;

  const Options& options_;
  pool::PoolClient& pool_;
  // MainSegments that other clients have replaced since this client remembers them. READs in vain cost two
  // verbs; a MainSegment that is read by a trip of its own, a trip.
  Tendency<1, 2, 32> stale_;
  // Windows that end before the free slot. One in vain costs a trip; a whole CurSegment, some hundred bytes.
  Tendency<8, 1, 64> missed_;
};

}  // namespace farside::index::sephash
