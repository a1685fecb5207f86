#include "index/chime/inner_nodes.h"

#include <utility>

#include "index/chime/errors.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::Op;
using fabric::Read;

namespace {

constexpr int kMostReads = 64;

}  // namespace

InnerImage InnerNodes::NewImage() const {
  InnerImage image;
  image.clears = clears_;
  return image;
}

std::array<fabric::ReadIntoVerb, 2> InnerNodes::ReadsOf(NodePtr at, InnerImage& image) const {
  return {Read(table_.At(at), BytesOf(image.header)),
          Read(table_.At(at) + pool::kLine, image.lines(table_.shape()))};
}

fabric::WriteVerb InnerNodes::ClearPivotVerb(NodePtr at, size_t slot) const {
  static constexpr std::array<std::byte, kMostPivotBytes> kNoPivot{};
  return fabric::Write(table_.At(at) + table_.shape().PivotOffset(slot),
                       std::span(kNoPivot).first(table_.shape().pivot_bytes()));
}

Task<std::shared_ptr<const Inner>> InnerNodes::Get(Op& op, NodePtr at) {
  std::shared_ptr<const Inner> known = cache_.Share(at);
  if (known == nullptr) known = co_await Load(op, at);
  co_return known;
}

// The header is READ once more behind the lines. A splitting client clears the pivots that leave before it
// writes the fence, so pivots may be missing although the fence is unchanged: those children are found along
// the siblings.
Task<std::shared_ptr<const Inner>> InnerNodes::Load(Op& op, NodePtr at) {
  if (at.null() || at.is_leaf()) co_return Damaged(at, "should be an inner node");
  for (int attempt = 0; attempt < kMostReads; ++attempt) {
    InnerImage image = NewImage();
    Header again;
    const auto [header, lines] = ReadsOf(at, image);
    const auto header_again = Read(table_.At(at), BytesOf(again));
    if (op.client().orders_reads()) {
      co_await op.InOrder(header, lines, header_again);
    } else {
      co_await op.Together(header, lines);
      co_await op.InOrder(header_again);
    }
    if (image.header.sibling != again.sibling) {
      op.CountRetry();
      continue;
    }
    image.header = again;
    const DecodedInner decoded = co_await Decode(op, at, image);
    co_return Remember(at, image, decoded);
  }
  co_return Contended("an inner node of the tree was split again and again");
}

Task<DecodedInner> InnerNodes::ReadAtRest(Op& op, NodePtr at, InnerImage& image) {
  image = NewImage();
  const auto [header, lines] = ReadsOf(at, image);
  co_await op.InOrder(header, lines);
  DecodedInner decoded = co_await Decode(op, at, image);
  co_return std::move(decoded);
}

Task<DecodedInner> InnerNodes::Decode(Op& op, NodePtr at, const InnerImage& image) {
  if (NodeInfo(image.header.info) != NodeInfo::Of(at.level()))
    co_return Damaged(at, "is not what it should be");
  const NodePtr heir(image.header.heir);
  if (!heir.null() && (heir.level() != at.level() || !table_.Has(heir))) co_return Damaged(at, "has no heir");
  DecodedInner decoded;
  decoded.fence = co_await bounds_.FenceOf(op, image.header, image.clears);
  for (size_t slot = 0; slot < table_.shape().fanout; ++slot) {
    const RawPivot raw = image.Get(table_.shape(), slot);
    if (raw.child.null()) continue;
    if (raw.child.level() + 1 != at.level() || !table_.Has(raw.child))
      co_return Damaged(at, "has a child that is none");
    Pivot pivot{.bound = {}, .raw = raw, .slot = slot};
    pivot.bound = co_await bounds_.Resolve(op, raw.prefix, raw.ref, image.clears);
    // INVARIANT chime/7
    if (IsBelow(Key(pivot.bound.text), decoded.fence)) {
      decoded.pivots.push_back(std::move(pivot));
    } else {
      ++decoded.beyond;
    }
  }
  if (decoded.pivots.empty()) co_return Damaged(at, "has no children");
  SortPivots(decoded.pivots);
  co_return std::move(decoded);
}

std::shared_ptr<const Inner> InnerNodes::Remember(NodePtr at, const InnerImage& image,
                                                  const DecodedInner& decoded) {
  std::shared_ptr<const Inner> node =
      Inner::Make(table_.shape(), at, decoded.fence, image.header, decoded.pivots);
  // INVARIANT chime/8: a READ that was under way at a Clear may show what was to be forgotten. And an
  // operation that comes to a dead node may have begun before the last Clear, which has made the client
  // forget the node.
  const bool is_new = image.clears == clears_ || Mutant(kOldReadRemembered);
  if (is_new && (!image.dead() || Mutant(kDeadInnerRemembered))) {
    const Inner* const before = at.level() == 1 ? cache_.Find(at) : nullptr;
    if (before != nullptr) node->TakeCountsOf(*before);
    cache_.Put(node);
  }
  return node;
}

void InnerNodes::RememberCount(NodePtr parent, NodePtr leaf, const Header& header, uint64_t clears) const {
  const Inner* const node = parent.null() || clears != clears_ ? nullptr : cache_.Find(parent);
  const size_t i = node != nullptr ? node->Find(leaf) : 0;
  if (node == nullptr || i == node->size()) return;
  const std::optional<Bound> end = bounds_.KnownFence(header);
  if (end.has_value()) node->RememberCount(i, *end, NodeLock(header.lock).count());
}

void InnerNodes::Clear() {
  ++clears_;
  cache_.Clear();
  first_leaves_.clear();
}

}  // namespace farside::index::chime
