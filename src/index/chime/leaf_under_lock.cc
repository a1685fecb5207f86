#include "index/chime/leaf_under_lock.h"

namespace farside::index::chime {

using fabric::Read;

namespace {

bool MayInsert(ChangeKind kind) {
  return kind == ChangeKind::kPut || kind == ChangeKind::kInsert || kind == ChangeKind::kIncrement;
}
bool ReadsWhole(const Options& options, ChangeKind kind) {
  return (MayInsert(kind) ? options.insert_read : options.leaf_read) == LeafRead::kWhole;
}

Neighbourhood HoodOf(const Shape& shape, const ChangeContext& change) {
  const Target& target = change.target;
  if (change.spot.has_value()) return Neighbourhood::Guess(shape, change.spot->slot, target.half());
  return Neighbourhood(shape, target.home, target.half());
}

}  // namespace

LeafUnderLock::LeafUnderLock(const TableContext& table, const ChangeContext& change, bool trusts_count,
                             bool expects_insert)
    : at_(change.position.node),
      count_(change.position.count),
      hood_(HoodOf(table.shape(), change)),
      verbs_{Read(table.At(at_), BytesOf(header_)),
             Read(table.At(at_) + SlotOffset(hood_.home()), hood_.tail()),
             Read(table.At(at_) + SlotOffset(0), hood_.wrapped())},
      // The whole neighbourhood, always: behind the first free slot there may be a copy of the key.
      reads_(std::span(verbs_).first(hood_.wrapped().empty() ? 2 : 3)),
      always_whole_(ReadsWhole(table.options, change.change.kind)) {
  if (hood_.is_guess()) {
    has_header_ = false;
    reads_ = reads_.subspan(1, 1);
  } else if (trusts_count && count_.has_value() && !always_whole_) {
    has_header_ = false;
    reads_ = reads_.subspan(1);
  } else if (always_whole_ || (expects_insert && MayInsert(change.change.kind))) {
    whole_ = std::span(room_).first(table.shape().leaf_bytes());
    verbs_[0] = Read(table.At(at_), whole_);
    reads_ = reads_.first(1);
  }
}

void LeafUnderLock::ReadLess(NodeLock held) {
  if (whole_.empty() || always_whole_) {
    if (LacksHeader(held)) AddHeader();
    return;
  }
  whole_ = {};
  verbs_[0] = Read(verbs_[0].verb.at, BytesOf(header_));
  has_header_ = held.count() != count_;
  reads_ = std::span(verbs_).first(hood_.wrapped().empty() ? 2 : 3).subspan(has_header_ ? 0 : 1);
}

std::span<const fabric::ReadIntoVerb> LeafUnderLock::MissingReads(NodeLock held, bool has_reads) {
  const bool lacks_header = LacksHeader(held);
  if (lacks_header) AddHeader();
  if (!has_reads) return reads_;
  return std::span(verbs_).first(lacks_header ? 1 : 0);
}

void LeafUnderLock::AddHeader() {
  has_header_ = true;
  reads_ = std::span(verbs_).first(reads_.size() + 1);
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
