#include "index/chime/leaf_reader.h"

#include "index/chime/errors.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::Op;
using fabric::Order;

namespace {

constexpr int kMostAttempts = 1000;

bool IsAtRest(const Header& before, const Header& after) {
  return before.moves == after.moves && after.moves % 2 == 0;
}

}  // namespace

// [READ header, READ lines, READ header] of each, in one trip; all leaves are on one memory node.
Task<Done> LeafReader::ReadOfOneNode(Op& op, std::span<const NodePtr> at, std::span<Leaf> leaves,
                                     std::span<Header> again) {
  const bool ordered = op.client().orders_reads();
  for (int part = 0; part < (ordered ? 1 : 3); ++part) {
    fabric::Batch trip(op, Order::kInOrder);
    for (size_t i = 0; i < at.size(); ++i) {
      const fabric::FarAddr leaf = table_.At(at[i]);
      if (ordered || part == 0) trip.Add(fabric::Read(leaf, leaves[i].header_bytes()));
      if (ordered || part == 1) trip.Add(fabric::Read(leaf + pool::kLine, leaves[i].lines(table_.shape())));
      if (ordered || part == 2) trip.Add(fabric::Read(leaf, BytesOf(again[i])));
    }
    co_await trip;
  }
  co_return Done{};
}

// Fence and sibling stand in one line, so no READ shows one without the other.
std::optional<Error> LeafReader::DamageOf(NodePtr at, const Header& header) {
  if (NodeInfo(header.info) != NodeInfo::Of(0)) return Damaged(at, "is not a leaf");
  if (BoundRef(header.fence_ref).infinite() != NodePtr(header.sibling).null())
    return Damaged(at, "ends in the wrong place");
  return std::nullopt;
}

Task<Done> LeafReader::ReadSeveral(Op& op, std::span<const NodePtr> at, std::vector<Leaf>& leaves,
                                   std::vector<bool>& at_rest) {
  leaves.resize(at.size());
  at_rest.assign(at.size(), false);
  std::vector<Header> again(at.size());
  // Runs of leaves on one memory node.
  for (size_t begin = 0; begin < at.size();) {
    size_t end = begin + 1;
    while (end < at.size() && at[end].node() == at[begin].node()) ++end;
    co_await ReadOfOneNode(op, at.subspan(begin, end - begin), std::span(leaves).subspan(begin, end - begin),
                           std::span(again).subspan(begin, end - begin));
    begin = end;
  }
  for (size_t i = 0; i < at.size(); ++i) {
    const std::optional<Error> damage = DamageOf(at[i], again[i]);
    if (damage.has_value()) co_return *damage;
    at_rest[i] = IsAtRest(leaves[i].header, again[i]) || Mutant(kScanReadsOnce);
    leaves[i].header = again[i];
  }
  co_return Done{};
}

Task<Done> LeafReader::Read(Op& op, NodePtr at, Leaf& leaf, LockWait wait) {
  if (at.null() || !at.is_leaf() || !table_.Has(at)) co_return Damaged(at, "should be a leaf");
  TornReads torn;
  for (int attempt = 1; attempt < kMostAttempts; ++attempt) {
    Header again;
    co_await ReadOfOneNode(op, std::span(&at, 1), std::span(&leaf, 1), std::span(&again, 1));
    const std::optional<Error> damage = DamageOf(at, again);
    if (damage.has_value()) co_return *damage;
    const bool at_rest = IsAtRest(leaf.header, again);
    leaf.header = again;
    if (at_rest) co_return Done{};
    op.CountRetry();
    torn.Note(again);
    co_await locks_.AwaitRest(op, at, torn, wait);
  }
  co_return Contended("a leaf of the tree was never at rest");
}

// As many in a trip as are on one memory node and as devices answer at once.
Task<std::vector<Header>> LeafReader::ReadHeaders(Op& op, std::span<const Pivot> pivots) {
  std::vector<Header> headers(pivots.size());
  for (size_t begin = 0; begin < pivots.size();) {
    fabric::Batch trip(op, Order::kInOrder);
    size_t i = begin;
    while (i < pivots.size() && i - begin < fabric::kAnsweredVerbsPerRoundTrip &&
           pivots[i].raw.child.node() == pivots[begin].raw.child.node()) {
      trip.Add(fabric::Read(table_.At(pivots[i].raw.child), BytesOf(headers[i])));
      ++i;
    }
    co_await trip;
    begin = i;
  }
  co_return headers;
}

}  // namespace farside::index::chime
