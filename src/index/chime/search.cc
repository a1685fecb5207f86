// Searching: one trip for a key that is there (and one for its block, with keys=bytes), two for one that is not.
#include <fmt/format.h>

#include "base/bytes.h"
#include "index/chime/chime.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Order;
using fabric::Read;

namespace {

// Looks that met somebody who moves entries, until it is worth a lock.
constexpr int kTornUntilLock = 4;
constexpr int kMostAttempts = 1000;

}  // namespace

std::optional<Error> Table::Refused(std::string_view key) const {
  if (!shape().inline_keys || key.size() == kPrefixBytes) return std::nullopt;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the key has {} bytes; the table was made with keys=inline, so keys have {}",
                           key.size(), kPrefixBytes));
}

// The operation takes effect when the line with the entry is sampled, or, if the key is absent, at some moment between the
// two READs of the header (chime/4).
Task<bool> Table::Get(Op& op, std::string_view key, std::string& value) {
  const std::optional<Error> refused = Refused(key);
  if (refused.has_value()) co_return *refused;
  const uint64_t catalogs = pool_.known_catalog_changes();
  Result<bool> found = co_await GetPinned(op, key, value).Outcome();
  if (!found.ok()) {
    const auto again = [&] { return GetPinned(op, key, value); };
    found = co_await WithRetries<bool>(op, RetryPolicySince(catalogs), found.error(), again).Outcome();
  }
  if (!found.ok()) co_return found.error();
  op.End(OpKind::kSearch, *found ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return *found;
}

Task<bool> Table::GetPinned(Op& op, std::string_view key, std::string& value) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  if (!IsFresh(pin)) co_await Refresh(op, pin);
  const Target target(shape(), hotspots_, key);
  ++searches_;
  const std::optional<Spot> spot = hotspots_.Find(target.spot_id);
  if (spot.has_value()) {
    const bool found = co_await Speculate(op, target, *spot, value);  // trip 1
    if (found || Mutant(kGuessIsFinal)) co_return found;
  }
  const std::optional<PathNode> known = Known(target.key, 0);
  PathNode at_node;
  if (known.has_value()) {
    at_node = *known;
  } else {
    at_node = co_await Find(op, target.key, 0);
  }
  Neighbourhood hood(shape(), target.home, target.half());
  NodePtr dead;  // that this search was led to
  int torn = 0;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Header header{};
    if (torn == 0) {
      co_await ReadNeighbourhood(op, at_node.node, hood, header);  // trip 1
      if (Contradicts(header, target)) co_return Damaged(at_node.node, kOtherHalf);
      const bool found =
          co_await FindValue(op, target, at_node.node, hood, value);  // trip 2, with keys=bytes
      if (found || Mutant(kMissNotConfirmed)) co_return found;
      const bool beyond = co_await IsBeyond(op, target.key, header);
      if (beyond) {
        op.CountRetry();
        at_node = co_await GoRight(op, target.key, at_node, header);
        continue;
      }
    }
    const Looked looked = co_await LookAgain(op, target, at_node.node, hood, header, value);
    if (looked == Looked::kFound || looked == Looked::kAbsent) co_return looked == Looked::kFound;
    op.CountRetry();
    if (looked == Looked::kDead) {
      torn = 0;
      dead = at_node.node;
      at_node = co_await GoToHeir(op, at_node, header);
      continue;
    }
    if (looked == Looked::kBeyond) {
      torn = 0;
      // INVARIANT chime/9: the heir has not got the keys yet, and nobody else can have any of them.
      if (!dead.null() && NodePtr(header.sibling) == dead) co_return false;
      at_node = co_await GoRight(op, target.key, at_node, header);
      continue;
    }
    // Somebody moves entries; or has died over it, and then somebody has to bring the leaf to rest.
    ++torn;
    if (torn % kTornUntilLock != 0) continue;
    if (pool_.read_only()) {
      co_await op.Pause(options_.backoff * attempt);
    } else {
      co_await AwaitUnlocked(op, at_node.node);
    }
  }
  co_return Contended("a leaf of the tree was never at rest");
}

// INVARIANT chime/1: whichever entries of a leaf are read, one that is the key's has its value. The leaf may have been split
// since it was remembered; that does not matter either (chime/5).
Task<bool> Table::Speculate(Op& op, const Target& target, Spot spot, std::string& value) {
  ++speculations_;
  Neighbourhood guess = Neighbourhood::Guess(shape(), spot.slot, target.half());
  co_await op.InOrder(Read(At(spot.leaf) + SlotOffset(spot.slot), guess.tail()));
  const bool found = co_await FindValue(op, target, spot.leaf, guess, value);
  if (found) {
    ++hits_;
  } else {
    hotspots_.Forget(target.spot_id);
    op.CountRetry();
  }
  co_return found;
}

Task<Done> Table::ReadNeighbourhood(Op& op, NodePtr leaf, Neighbourhood& hood, Header& header) {
  const FarAddr at = At(leaf);
  const bool with_fence = options_.fence_read == FenceRead::kAlways;
  if (options_.leaf_read == LeafRead::kWhole) {
    std::vector<std::byte> whole(shape().leaf_bytes());
    const size_t skipped = with_fence ? 0 : pool::kLine;
    co_await op.InOrder(Read(at + skipped, std::span(whole).subspan(skipped)));
    if (with_fence) header = HeaderOf(whole);
    hood.CopyFrom(std::span(whole).subspan(pool::kLine));
    co_return Done{};
  }
  fabric::SmallBatch<3> trip(op, Order::kInOrder);
  if (with_fence) trip.Add(Read(at, std::as_writable_bytes(std::span(&header, 1))));
  trip.Add(Read(at + SlotOffset(hood.home()), hood.tail()));
  if (!hood.wrapped().empty()) trip.Add(Read(at + SlotOffset(0), hood.wrapped()));
  co_await trip;
  co_return Done{};
}

// INVARIANT chime/5: nobody goes on before the leaf is at rest.
Task<bool> Table::IsBeyond(Op& op, Key key, Header header) {
  if (NodeInfo(header.info) != NodeInfo::Of(0) || header.moves % 2 != 0) co_return false;
  const bool below = co_await IsBelowFence(op, key, header);
  co_return !below;
}

Task<Table::Looked> Table::LookAgain(Op& op, const Target& target, NodePtr leaf, Neighbourhood& hood,
                                     Header& header, std::string& value) {
  const FarAddr at = At(leaf);
  Header before;
  const auto header_before = Read(at, std::as_writable_bytes(std::span(&before, 1)));
  const auto header_after = Read(at, std::as_writable_bytes(std::span(&header, 1)));
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
  if (Contradicts(header, target)) co_return Damaged(leaf, kOtherHalf);
  const bool found = co_await FindValue(op, target, leaf, hood, value);
  if (found) co_return Looked::kFound;
  // INVARIANT chime/4
  const bool odd = header.moves % 2 != 0 && !Mutant(kOddIgnored);
  if (before.moves != header.moves || odd) co_return Looked::kTorn;
  const bool below = co_await IsBelowFence(op, target.key, header);
  // The fence first: the heir gets what is below it. What was split away before the leaf died is to the right of it.
  const bool was_its = below || Mutant(kHeirBeforeFence);
  if (was_its && header.heir != 0 && !Mutant(kHeirIgnored)) co_return Looked::kDead;
  co_return below || Mutant(kFenceIgnored) ? Looked::kAbsent : Looked::kBeyond;
}

// INVARIANT chime/11. Of a header that was not read, nothing is known.
bool Table::Contradicts(const Header& header, const Target& target) const {
  return shape().inline_keys && NodeInfo(header.info) == NodeInfo::Of(0) && HalfOf(header) != target.half();
}

bool Table::MayBe(const Target& target, const Neighbourhood& hood, const Entry& entry) const {
  if (Mutant(kGuessNotCompared) && hood.is_guess()) return entry.used;
  if (!entry.used || entry.key != target.key.prefix) return false;
  if (Mutant(kZeroKeyIsFree) && entry.key == 0) return false;
  return shape().inline_keys || BlockRef(entry.value).tag() == TagOf(target.hash);
}

Task<bool> Table::FindValue(Op& op, const Target& target, NodePtr leaf, const Neighbourhood& hood,
                            std::string& value) {
  for (size_t i = 0; i < hood.size(); ++i) {
    const Entry entry = hood.Get(i);
    if (!MayBe(target, hood, entry)) continue;
    const Spot spot{.leaf = leaf, .slot = hood.SlotAt(i)};
    if (shape().inline_keys) {
      hotspots_.Remember(target.spot_id, spot, target.clears);
      std::array<std::byte, 8> bytes;
      StoreU64(bytes.data(), entry.value);
      value.assign(AsText(bytes));
      co_return true;
    }
    BlockBuffer buffer;
    co_await ReadBlock(op, BlockRef(entry.value), buffer);
    const Result<pool::BlockView> view = pool::DecodeBlock(buffer.bytes());
    if (!view.ok()) co_return view.error();
    if (view->key != target.key.text && !Mutant(kPrefixIsKey)) continue;
    hotspots_.Remember(target.spot_id, spot, target.clears);
    value.assign(view->value);
    co_return true;
  }
  co_return false;
}

Task<Done> Table::ReadBlock(Op& op, BlockRef block, BlockBuffer& buffer) {
  return index::ReadBlock(op, AddressOf(block.word(), nodes_), block.bytes(), buffer);
}

Task<bool> Table::IsBelowFence(Op& op, Key key, Header header) {
  const BoundRef ref(header.fence_ref);
  if (ref.infinite()) co_return true;
  if (key.prefix != header.fence_prefix) co_return key.prefix < header.fence_prefix;
  const Bound fence = co_await Resolve(op, header.fence_prefix, ref);
  co_return IsBelow(key, fence);
}

}  // namespace farside::index::chime
