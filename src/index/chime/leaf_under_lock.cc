#include "index/chime/leaf_under_lock.h"

namespace farside::index::chime {

using fabric::Read;

namespace {

bool ReadsWhole(const Options& options, ChangeKind kind) {
  const bool may_insert =
      kind == ChangeKind::kPut || kind == ChangeKind::kInsert || kind == ChangeKind::kIncrement;
  return (may_insert ? options.insert_read : options.leaf_read) == LeafRead::kWhole;
}

Neighbourhood HoodOf(const Shape& shape, const ChangeContext& change) {
  const Target& target = change.target;
  if (change.spot.has_value()) return Neighbourhood::Guess(shape, change.spot->slot, target.half());
  return Neighbourhood(shape, target.home, target.half());
}

}  // namespace

LeafUnderLock::LeafUnderLock(const TableContext& table, const ChangeContext& change)
    : at_(change.position.node),
      hood_(HoodOf(table.shape(), change)),
      verbs_{Read(table.At(at_), BytesOf(header_)),
             Read(table.At(at_) + SlotOffset(hood_.home()), hood_.tail()),
             Read(table.At(at_) + SlotOffset(0), hood_.wrapped())},
      reads_(verbs_) {
  if (hood_.is_guess()) {
    reads_ = reads_.subspan(1, 1);
  } else if (ReadsWhole(table.options, change.change.kind)) {
    whole_.resize(table.shape().leaf_bytes());
    verbs_[0] = Read(table.At(at_), whole_);
    reads_ = reads_.first(1);
  } else if (hood_.wrapped().empty()) {
    // The whole neighbourhood, always: behind the first free slot there may be a copy of the key.
    reads_ = reads_.first(2);
  }
}

void LeafUnderLock::TakeReads() {
  if (whole_.empty()) return;
  header_ = HeaderOf(whole_);
  hood_.CopyFrom(lines());
}

std::span<const std::byte> LeafUnderLock::lines() const {
  return whole_.empty() ? std::span<const std::byte>() : std::span(whole_).subspan(pool::kLine);
}

}  // namespace farside::index::chime
