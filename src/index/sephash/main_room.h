// Far memory for a MainSegment that is about to be made: its head and its pages.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/kit/unpublished.h"
#include "index/sephash/layout.h"
#include "index/sephash/main_segment.h"
#include "pool/memory/allocator.h"

namespace farside::index::sephash {

class MainRoom {
 public:
  MainRoom(const Shape& shape, fabric::NodeId node) : shape_(shape), node_(node) {}

  // For so many pages.
  Task<Done> Fetch(fabric::Op& op, pool::Allocator& allocator, uint64_t pages);
  // Instead, that of a spare MainSegment which this client has taken.
  void Adopt(fabric::FarAddr head, const std::vector<uint32_t>& numbers);

  fabric::FarAddr at() const { return head_.at(); }
  uint64_t pages() const { return pages_.size(); }
  std::vector<uint32_t> numbers() const;

  // Writes the pages for which the trip that commits has no room; nearly always there are none. While they
  // are written, the room is not given back: a WRITE that no operation waits for may land late.
  Task<Done> WriteEarly(fabric::Op& op, const MainImage& image);
  // Adds the other WRITEs to that trip. The image must stay as it is until it has ended.
  void AddWrites(fabric::Batch& trip, const MainImage& image) const;

  void Publish();
  void Unpublish();

 private:
  // Of two MainSegments, a trip takes so many, with all else that commits a split.
  static constexpr size_t kPagesOfCommit = 24;
  static_assert(2 * (kPagesOfCommit + 1) + 2 <= fabric::kMaxVerbsPerTrip);

  void AddPages(fabric::Batch& trip, const MainImage& image, size_t first, size_t end) const;

  const Shape shape_;
  const fabric::NodeId node_;
  Unpublished head_;
  std::deque<Unpublished> pages_;
};

// Retires all of a MainSegment.
void RetireMain(pool::Allocator& allocator, const Shape& shape, fabric::FarAddr at,
                const std::vector<uint32_t>& pages, uint64_t birth);

}  // namespace farside::index::sephash
