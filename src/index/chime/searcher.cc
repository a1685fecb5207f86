#include "index/chime/searcher.h"

#include <vector>

#include "index/chime/entry_finder.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;

namespace {

constexpr int kMostAttempts = 1000;

}  // namespace

Task<bool> Searcher::TrySearch(SearchContext& search) {
  Op& op = search.op;
  if (!root_.IsFresh(*search.pin)) co_await root_.Refresh(op, *search.pin);
  Target& target = search.target;
  target.clears = hotspots_.clears();
  ++counts_.searches;
  const std::optional<Spot> spot = hotspots_.Find(target.spot_id);
  if (spot.has_value()) {
    const bool found = co_await Speculate(search, *spot);  // trip 1
    if (found || Mutant(kGuessIsFinal)) co_return found;
  }
  if (!locator_.FindCached(target.key, 0, search.position))
    search.position = co_await locator_.Find(op, target.key, 0);
  Neighbourhood hood(table_.shape(), target.home, target.half());
  search.dead = NodePtr();
  search.torn = TornReads();
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const NodePtr leaf = search.position.node;
    Header header{};
    if (search.torn.times() == 0) {
      co_await ReadNeighbourhood(op, leaf, hood, header);  // trip 1
      if (Contradicts(table_.shape(), header, target)) co_return Damaged(leaf, kOtherHalf);
      const bool found = co_await FindValue(search, leaf, hood);  // trip 2, with keys=bytes
      if (found || Mutant(kMissNotConfirmed)) co_return found;
      // INVARIANT chime/5: the search goes on to the sibling only if the leaf is at rest.
      if (NodeInfo(header.info) == NodeInfo::Of(0) && header.moves % 2 == 0) {
        std::optional<bool> below = bounds_.IsBelowKnownFence(target.key, header);
        if (!below.has_value()) below = co_await bounds_.IsBelowFence(op, target.key, header, target.clears);
        if (!*below) {
          op.CountRetry();
          search.position = co_await locator_.GoRight(op, target.key, search.position, header);
          continue;
        }
      }
    }
    const Looked looked = co_await LookAgain(search, hood, header);
    if (looked == Looked::kFound || looked == Looked::kAbsent) co_return looked == Looked::kFound;
    op.CountRetry();
    // INVARIANT chime/9: the heir does not have the dead leaf's range yet, so no leaf has a key of it.
    if (looked == Looked::kBeyond && !search.dead.null() && NodePtr(header.sibling) == search.dead)
      co_return false;
    co_await GoOn(search, looked, header);
  }
  co_return Contended("a leaf of the tree was never at rest");
}

Task<Done> Searcher::GoOn(SearchContext& search, Looked looked, Header header) {
  const NodePtr leaf = search.position.node;
  if (looked == Looked::kDead) {
    search.torn = TornReads();
    search.dead = leaf;
    search.position = co_await locator_.GoToHeir(search.op, search.position, header);
    co_return Done{};
  }
  if (looked == Looked::kBeyond) {
    search.torn = TornReads();
    search.position = co_await locator_.GoRight(search.op, search.target.key, search.position, header);
    co_return Done{};
  }
  search.torn.Note(header);
  co_await locks_.AwaitRest(search.op, leaf, search.torn);
  co_return Done{};
}

// INVARIANT chime/1: an entry with the key has the key's value, whichever other entries of the leaf were
// READ. It does not matter whether the leaf was split after the place was remembered (chime/5).
Task<bool> Searcher::Speculate(SearchContext& search, Spot spot) {
  ++counts_.speculations;
  Neighbourhood guess = Neighbourhood::Guess(table_.shape(), spot.slot, search.target.half());
  co_await search.op.InOrder(Read(table_.At(spot.leaf) + SlotOffset(spot.slot), guess.tail()));
  const bool found = co_await FindValue(search, spot.leaf, guess);
  if (found) {
    ++counts_.hits;
  } else {
    hotspots_.Forget(search.target.spot_id);
    search.op.CountRetry();
  }
  co_return found;
}

Task<Done> Searcher::ReadNeighbourhood(Op& op, NodePtr leaf, Neighbourhood& hood, Header& header) {
  const FarAddr at = table_.At(leaf);
  const bool with_fence = table_.options.fence_read == FenceRead::kAlways;
  if (table_.options.leaf_read == LeafRead::kWhole) {
    std::vector<std::byte> whole(table_.shape().leaf_bytes());
    const size_t skipped = with_fence ? 0 : pool::kLine;
    co_await op.InOrder(Read(at + skipped, std::span(whole).subspan(skipped)));
    if (with_fence) header = HeaderOf(whole);
    hood.CopyFrom(std::span(whole).subspan(pool::kLine));
    co_return Done{};
  }
  fabric::SmallBatch<3> trip(op, Order::kInOrder);
  if (with_fence) trip.Add(Read(at, BytesOf(header)));
  trip.Add(Read(at + SlotOffset(hood.home()), hood.tail()));
  if (!hood.wrapped().empty()) trip.Add(Read(at + SlotOffset(0), hood.wrapped()));
  co_await trip;
  co_return Done{};
}

Task<Searcher::Looked> Searcher::LookAgain(SearchContext& search, Neighbourhood& hood, Header& header) {
  Op& op = search.op;
  const NodePtr leaf = search.position.node;
  const FarAddr at = table_.At(leaf);
  Header before;
  const auto header_before = Read(at, BytesOf(before));
  const auto header_after = Read(at, BytesOf(header));
  if (op.client().orders_reads()) {
    fabric::SmallBatch<4> trip(op, Order::kInOrder);
    trip.Add(header_before);
    trip.Add(Read(at + SlotOffset(hood.home()), hood.tail()));
    if (!hood.wrapped().empty()) trip.Add(Read(at + SlotOffset(0), hood.wrapped()));
    trip.Add(header_after);
    co_await trip;
  } else {
    co_await op.InOrder(header_before);
    Header between;
    co_await ReadNeighbourhood(op, leaf, hood, between);
    co_await op.InOrder(header_after);
  }
  if (NodeInfo(header.info) != NodeInfo::Of(0)) co_return Damaged(leaf, "is not a leaf");
  if (Contradicts(table_.shape(), header, search.target)) co_return Damaged(leaf, kOtherHalf);
  const bool found = co_await FindValue(search, leaf, hood);
  if (found) co_return Looked::kFound;
  // INVARIANT chime/4
  const bool odd = header.moves % 2 != 0 && !Mutant(kOddIgnored);
  if (before.moves != header.moves || odd) co_return Looked::kTorn;
  std::optional<bool> below = bounds_.IsBelowKnownFence(search.target.key, header);
  if (!below.has_value())
    below = co_await bounds_.IsBelowFence(op, search.target.key, header, search.target.clears);
  // The fence before the heir: the heir gets the keys below the fence. What was split off before the leaf
  // died is to the right of it.
  const bool had_key = *below || Mutant(kHeirBeforeFence);
  if (had_key && header.heir != 0 && !Mutant(kHeirIgnored)) co_return Looked::kDead;
  co_return *below || Mutant(kFenceIgnored) ? Looked::kAbsent : Looked::kBeyond;
}

Task<bool> Searcher::FindValue(SearchContext& search, NodePtr leaf, const Neighbourhood& hood) {
  EntryFinder finder(table_, search.target, hood);
  while (finder.needs_block()) {
    co_await search.op.InOrder(finder.BlockRead());
    const Status taken = finder.TakeBlock();
    if (!taken.ok()) co_return taken.error();
  }
  if (!finder.found()) co_return false;
  hotspots_.Remember(search.target.spot_id, {.leaf = leaf, .slot = finder.slot()}, search.target.clears);
  search.value.assign(finder.value());
  co_return true;
}

}  // namespace farside::index::chime
