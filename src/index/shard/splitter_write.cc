// Writing a split.
#include <algorithm>
#include <array>

#include "index/shard/mutants.h"
#include "index/shard/splitter.h"

namespace farside::index::shard {

using fabric::Batch;
using fabric::FarAddr;
using fabric::Order;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

namespace {

constexpr size_t kNodesPerTrip = 32;

// A unit as it is to be in far memory, and the lines of it that are left as they are.
struct Image {
  UnitLines lines;
  std::array<bool, kMostLines + 1> keep{};
};

Image ImageOf(size_t lines, const Bucket& bucket, const std::array<bool, kMostLines>& keep, const Line& line,
              bool keep_line) {
  Image image;
  std::copy_n(bucket.lines.begin(), lines, image.lines.begin());
  std::copy_n(keep.begin(), lines, image.keep.begin());
  image.lines[lines] = line;
  image.keep[lines] = keep_line;
  return image;
}

// Some lines in one WRITE, without the lines that are kept.
void AddWrites(Batch& trip, FarAddr at, const Image& image, size_t first, size_t end) {
  for (size_t last = first; first < end; first = last) {
    while (last < end && image.keep[last] == image.keep[first]) ++last;
    const std::span<const Line> some = std::span(image.lines).subspan(first, last - first);
    if (!image.keep[first]) trip.Add(Write(at + first * sizeof(Line), std::as_bytes(some)));
  }
}

}  // namespace

// INVARIANTS shard/7 and 8: WRITEs keep their order. The new unit is whole before anything leaves the old
// one, and the front lines of the old bucket before the others (arrange.h): so at any moment every entry that
// stays is in a line that is written, or still in its own.
Task<Done> Splitter::WriteSplit(Access at, Split& split, Draft* draft, bool unlock) {
  split.writing = true;
  co_await WriteNodes(at, split);
  Batch trip(at.op, Order::kInOrder);
  if (split.publishes) {
    draft->Publish();
    trip.Add(draft->Write());
  }
  const size_t lines = at.shape().lines();
  const Image new_unit =
      ImageOf(lines, split.new_bucket, split.keep_new, split.new_line, split.keep_new_line);
  const Image old_unit =
      ImageOf(lines, split.old_bucket, split.keep_old, split.old_overflow.line, split.keep_old_line);
  const FarAddr new_at = at.part.BucketAt(split.new_unit);
  const FarAddr old_at = at.part.BucketAt(split.unit);
  if (!Mutant(kParentFirst)) AddWrites(trip, new_at, new_unit, 0, lines + 1);
  if (Mutant(kBackLinesFirst)) AddWrites(trip, old_at, old_unit, split.front, lines + 1);
  AddWrites(trip, old_at, old_unit, 0, split.front);
  if (!Mutant(kBackLinesFirst)) AddWrites(trip, old_at, old_unit, split.front, lines + 1);
  if (Mutant(kParentFirst)) AddWrites(trip, new_at, new_unit, 0, lines + 1);
  LockRelease release = locks_.ReleaseOf(at.part, split.unit);
  if (unlock) release.AddTo(trip, at.op);
  co_await trip;
  if (release.WasLost(trip)) {
    co_return Error(ErrorCode::kFenced,
                    "a lock was taken from this client, which was taken for dead; reconnect");
  }
  for (const Node& node : split.old_overflow.nodes) {
    pool_.allocator(at.part.node()).Retire(node.at, sizeof(Line), pool_.published_epoch(at.part.node()));
  }
  co_return Done{};
}

Task<Done> Splitter::WriteNodes(Access at, const Split& split) {
  for (size_t first = 0; first < split.made_nodes.size(); first += kNodesPerTrip) {
    Batch trip(at.op, Order::kInOrder);
    for (size_t i = first; i < std::min(split.made_nodes.size(), first + kNodesPerTrip); ++i)
      trip.Add(Unreachable(WriteObject(split.made_nodes[i].at, split.made_nodes[i].line)));
    co_await trip;
  }
  co_return Done{};
}

}  // namespace farside::index::shard
