#include "index/chime/cursor_reader.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/hash.h"
#include "farside/range.h"
#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/key.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::Op;

namespace {

// The four words of Cursor::position: phase and `merges` as they were before the last page; the next leaf;
// prefix and hash of the bound that this leaf begins at.
constexpr uint64_t kPhases = 4;  // phase + kPhases * merges
constexpr uint64_t kAtBegin = 0;
constexpr uint64_t kAtLeaf = 1;
constexpr uint64_t kAtEnd = 2;
// Leaves that a cursor may visit on its way: sound memory needs few.
constexpr int kMostSteps = 1'000'000;

}  // namespace

Task<bool> CursorReader::Try(Op& op, Cursor& cursor, std::vector<Record>& page) {
  auto& [phase, word, prefix, hash] = cursor.position;
  const size_t before = page.size();
  const uint64_t merges = root_.merges();  // as it is before any leaf is READ
  const uint64_t clears = bounds_.clears();
  NodePtr at;
  if (phase % kPhases == kAtBegin) at = co_await locator_.Leftmost(op, 0);
  if (phase % kPhases == kAtLeaf) at = co_await LeafOf(op, cursor);
  Circle circle;
  while (phase % kPhases != kAtEnd && page.size() == before) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    Leaf leaf;
    co_await leaves_.Read(op, at, leaf);
    std::vector<Item> items;
    records_.Collect(leaf, KeyRange::All(), items);
    std::vector<Record> records = co_await records_.Read(op, items);
    std::move(records.begin(), records.end(), std::back_inserter(page));
    const Bound fence = co_await bounds_.FenceOf(op, leaf.header, clears);
    // A dead leaf may end before the cursor: the node that led there did not know of a split before the leaf
    // died.
    if (phase % kPhases == kAtLeaf && !leaf.dead() && !fence.infinite && fence.prefix < prefix)
      co_return Damaged(at, kInCircles);
    at = NodePtr(leaf.header.sibling);
    word = at.word();
    prefix = fence.prefix;
    hash = Hash64(fence.text);
    phase = kPhases * merges + (at.null() ? kAtEnd : kAtLeaf);
  }
  co_return page.size() > before;
}

// INVARIANT chime/8: the leaf existed when the cursor came to it, and `merges` was not less than what the
// cursor says. So for a client that knows of no later merge, it is still the same leaf. Otherwise the cursor
// goes on at the leaf that now begins at the bound. If that bound is gone, it goes on at the first leaf with
// keys of the bound's prefix, and some records come once more.
Task<NodePtr> CursorReader::LeafOf(Op& op, const Cursor& cursor) {
  const auto& [phase, word, prefix, hash] = cursor.position;
  if (phase / kPhases >= root_.merges() || Mutant(kCursorTrusts)) co_return NodePtr(word);
  const uint64_t clears = bounds_.clears();
  std::string text = TextOf(prefix, kPrefixBytes);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  Leaf leaf;
  const NodePtr first = co_await ReadLeafOf(op, Key(text), leaf);
  NodePtr at = first;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    const Bound fence = co_await bounds_.FenceOf(op, leaf.header, clears);
    if (fence.infinite || fence.prefix > prefix) co_return first;
    const NodePtr next(leaf.header.sibling);
    if (fence.prefix == prefix && Hash64(fence.text) == hash) co_return next;
    at = next;
    co_await leaves_.Read(op, next, leaf);
  }
  co_return Damaged(at, kInCircles);
}

Task<NodePtr> CursorReader::ReadLeafOf(Op& op, Key key, Leaf& leaf) {
  const uint64_t clears = bounds_.clears();
  Position position = co_await locator_.Find(op, key, 0);
  co_await leaves_.Read(op, position.node, leaf);
  NodePtr dead;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    if (leaf.dead() && position.node != dead) {
      dead = position.node;
      position = co_await locator_.GoToHeir(op, position, leaf.header);
    } else {
      const bool below = co_await bounds_.IsBelowFence(op, key, leaf.header, clears);
      // A dead leaf that its heir still names counts as an empty one.
      if (below || leaf.dead()) co_return position.node;
      position = co_await locator_.GoRight(op, key, position, leaf.header);
    }
    co_await leaves_.Read(op, position.node, leaf);
  }
  co_return Damaged(position.node, kInCircles);
}

}  // namespace farside::index::chime
