#include "index/sephash/directory.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <span>

#include "index/kit/unpublished.h"
#include "index/sephash/errors.h"
#include "index/sephash/mutants.h"

namespace farside::index::sephash {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;

namespace {

constexpr uint64_t kZeroedByATrip = 64 * 1024;
constexpr uint64_t kEntriesByATrip = 32 * 1024;
constexpr uint32_t kNoSegment = ~uint32_t{0};

// Whether no byte of the part is also one of the root, or of a part before it: a table has no memory twice.
bool IsApart(const Shape& shape, uint64_t root_at, const Root& root, size_t part) {
  const uint64_t begin = root.parts[part];
  const uint64_t end = begin + shape.PartBytes(part);
  if (begin < root_at + sizeof(Root) && root_at < end) return false;
  for (size_t other = 0; other < part; ++other) {
    if (begin < root.parts[other] + shape.PartBytes(other) && root.parts[other] < end) return false;
  }
  return true;
}

}  // namespace

FarAddr Directory::PartSlot(size_t part) const {
  return root_ + offsetof(Root, parts) + part * sizeof(uint64_t);
}

FarAddr Directory::EntryOf(uint64_t suffix) const {
  const size_t part = shape_.PartOf(suffix);
  return FarAddr(root_.node, parts_[part] + (suffix - shape_.FirstOfPart(part)) * sizeof(uint64_t));
}

// ---- learning ----------------------------------------------------------------------------------------

Task<Root> Directory::ReadRoot(Op& op) {
  const Root root = co_await op.InOrder(Read<Root>(root_));
  const Status taken = TakeParts(root);
  if (!taken.ok()) co_return taken.error();
  co_return root;
}

Status Directory::TakeParts(const Root& root) {
  const uint64_t region = pool_.member(node()).geometry().region_bytes;
  for (size_t part = 0; part < kMostParts && root.parts[part] != 0; ++part) {
    const uint64_t offset = root.parts[part];
    const bool fits = shape_.initial_bits + part <= shape_.most_depth() && offset % pool::kLine == 0 &&
                      shape_.PartBytes(part) <= region && offset <= region - shape_.PartBytes(part) &&
                      IsApart(shape_, root_.offset, root, part);
    if (!fits) return DamagedRoot(root_, "names a part of the directory that cannot be");
    parts_[part] = offset;
  }
  if (parts_[0] == 0) return DamagedRoot(root_, "names no directory");
  return OkStatus();
}

Task<Done> Directory::KnowPart(Op& op, size_t part) {
  if (part < kMostParts && parts_[part] != 0) co_return Done{};
  co_await ReadRoot(op);
  if (part >= kMostParts || parts_[part] == 0)
    co_return DamagedRoot(root_, "has no entry for a segment that was split");
  co_return Done{};
}

// All of it, or nothing: what is known of a directory has a segment for every hash. It is READ in pieces, of
// which the entries are kept: a part that a damaged root names takes no memory before its entries have come.
Task<Done> Directory::Load(Op& op) {
  co_await ReadRoot(op);
  struct Found {
    uint64_t segment;
    uint64_t suffix;
    uint32_t depth;
  };
  std::vector<Found> entries;
  std::vector<uint64_t> piece;
  for (size_t part = 0; part < kMostParts && parts_[part] != 0; ++part) {
    const auto depth = static_cast<uint32_t>(shape_.initial_bits + part);
    for (uint64_t first = 0; first < shape_.PartEntries(part); first += piece.size()) {
      piece.resize(std::min(kEntriesByATrip, shape_.PartEntries(part) - first));
      const FarAddr at(node(), parts_[part] + first * sizeof(uint64_t));
      co_await op.InOrder(Read(at, std::as_writable_bytes(std::span(piece))));
      for (size_t i = 0; i < piece.size(); ++i) {
        const bool made = piece[i] != 0 || part == 0;
        if (made) entries.push_back({piece[i], shape_.FirstOfPart(part) + first + i, depth});
      }
    }
  }
  if (known()) co_return Done{};  // another operation of this client was faster
  for (const Found& entry : entries) {
    const uint64_t segment = entry.segment;
    const bool sound =
        segment != 0 && segment % pool::kLine == 0 && Learn(segment, entry.suffix, entry.depth);
    if (sound) continue;
    Forget();
    co_return DamagedRoot(root_, "has a directory that lacks a segment, or names one twice");
  }
  co_return Done{};
}

void Directory::Forget() {
  routes_.clear();
  segments_.clear();
  by_offset_.clear();
}

bool Directory::Learn(uint64_t segment, uint64_t suffix, uint32_t depth) {
  if (routes_.empty()) routes_.resize(size_t{1} << shape_.initial_bits, kNoSegment);
  while (routes_.size() < size_t{1} << depth) {
    routes_.reserve(2 * routes_.size());
    std::copy_n(routes_.begin(), routes_.size(), std::back_inserter(routes_));
  }
  const auto number = static_cast<uint32_t>(segments_.size());
  if (!by_offset_.try_emplace(segment, number).second) return false;
  segments_.push_back(std::make_unique<Segment>(FarAddr(node(), segment), suffix, depth));
  // Segments that were made by later splits keep their routes.
  for (uint64_t route = suffix; route < routes_.size(); route += uint64_t{1} << depth) {
    if (routes_[route] == kNoSegment || segments_[routes_[route]]->born < depth) routes_[route] = number;
  }
  return true;
}

Segment& Directory::Know(uint64_t segment, uint64_t suffix) {
  Learn(segment, suffix, std::max<uint32_t>(shape_.initial_bits, std::bit_width(suffix)));
  return *segments_[by_offset_.at(segment)];
}

// Each step takes at least one more bit of the hash into account.
Task<Done> Directory::Follow(Op& op, const Segment& segment, MetaWord meta, uint64_t hash, bool completes) {
  const auto bit = static_cast<uint32_t>(std::countr_zero(hash ^ segment.suffix));
  const uint64_t suffix = hash & LowBits(bit + 1);
  // INVARIANT sephash/11.
  if (bit + 1 == meta.depth()) {
    const FarAddr main_at(node(), meta.main());
    const MainHeader main = co_await op.InOrder(Read<MainHeader>(main_at));
    if (main.segment != segment.at.offset) co_return DamagedMain(main_at, "belongs to another segment");
    if (main.sibling != 0) {
      co_await KnowPart(op, shape_.PartOf(suffix));
      // An entry is never changed again: it is made only for a segment that is one.
      const auto made = co_await op.InOrder(Read<SegmentHeader>(FarAddr(node(), main.sibling)));
      if (made.suffix != suffix || made.meta.depth() < meta.depth())
        co_return DamagedMain(main_at, "names a sibling that is none");
      if (completes && !pool_.read_only() && !Mutant(kSiblingNotCompleted))
        co_await Complete(op, suffix, main.sibling);
      Learn(main.sibling, suffix, meta.depth());
      // An entry that is damaged may have named the sibling before, for other hashes.
      if (&Find(hash) == &segment) co_return DamagedMain(main_at, "names a sibling of other hashes");
      co_return Done{};
    }
    if (Mutant(kDirectoryNotAsked)) co_return DamagedRoot(root_, "does not name a sibling");
  }
  co_await KnowPart(op, shape_.PartOf(suffix));
  const uint64_t found = co_await op.InOrder(Read<uint64_t>(EntryOf(suffix)));
  if (found == 0 || found % pool::kLine != 0 || found == segment.at.offset)
    co_return DamagedRoot(root_, "does not name the segment that a split has made");
  Learn(found, suffix, bit + 1);
  if (&Find(hash) == &segment) co_return DamagedRoot(root_, "names a segment twice");
  co_return Done{};
}

// ---- splits ------------------------------------------------------------------------------------------

Task<Done> Directory::MakePart(Op& op, uint32_t depth) {
  const size_t part = depth - shape_.initial_bits;
  if (parts_[part] != 0) co_return Done{};
  co_await ReadRoot(op);
  if (parts_[part] != 0) co_return Done{};
  Unpublished made;
  if (!made.Reserve(pool_.allocator(node()), shape_.PartBytes(part))) co_await made.FetchRoom(op);
  // While WRITEs are in flight, it is not given back: one that this operation does not wait for may land
  // late.
  made.Publish();
  const std::vector<std::byte> zeros(std::min(made.bytes(), kZeroedByATrip));
  for (uint64_t done = 0; done < made.bytes() && !Mutant(kPartNotEmpty); done += zeros.size()) {
    const std::span<const std::byte> some(zeros.data(),
                                          std::min<uint64_t>(zeros.size(), made.bytes() - done));
    co_await op.InOrder(Unreachable(Write(made.at() + done, some)));
  }
  // INVARIANT sephash/13: all of it is there, and empty, before a client can find it.
  const uint64_t old = co_await op.InOrder(Cas(PartSlot(part), 0, made.at().offset));
  if (old != 0) made.Unpublish();
  parts_[part] = old != 0 ? old : made.at().offset;
  co_return Done{};
}

Task<Done> Directory::Complete(Op& op, uint64_t suffix, uint64_t segment) {
  co_await KnowPart(op, shape_.PartOf(suffix));
  co_await op.InOrder(Cas(EntryOf(suffix), 0, segment));
  co_return Done{};
}

void Directory::CompleteLater(Op& op, uint64_t suffix, uint64_t segment) {
  op.Detach(Order::kInOrder, Cas(EntryOf(suffix), 0, segment));
}

// ---- figures -----------------------------------------------------------------------------------------

uint64_t Directory::bytes() const {
  uint64_t bytes = routes_.capacity() * sizeof(uint32_t) + segments_.capacity() * sizeof(void*) +
                   by_offset_.size() * (sizeof(std::pair<uint64_t, uint32_t>) + 2 * sizeof(void*));
  for (const auto& segment : segments_) bytes += segment->bytes();
  return bytes;
}

}  // namespace farside::index::sephash
