#include "index/sephash/main_room.h"

#include <algorithm>
#include <span>
#include <utility>

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;

Task<Done> MainRoom::Fetch(Op& op, pool::Allocator& allocator, uint64_t pages) {
  if (!head_.Reserve(allocator, shape_.HeadBytes(pages))) co_await head_.FetchRoom(op);
  while (pages_.size() < pages) {
    Unpublished page;
    if (!page.Reserve(allocator, shape_.page_bytes())) co_await page.FetchRoom(op);
    pages_.push_back(std::move(page));
  }
  co_return Done{};
}

void MainRoom::Adopt(FarAddr head, const std::vector<uint32_t>& numbers) {
  pages_.clear();
  head_.Adopt(head, shape_.HeadBytes(Shape::kUsualPages));
  for (const uint32_t number : numbers) {
    const FarAddr page(node_, number * shape_.page_bytes());
    pages_.emplace_back().Adopt(page, shape_.page_bytes());
  }
}

std::vector<uint32_t> MainRoom::numbers() const {
  std::vector<uint32_t> numbers;
  for (const Unpublished& page : pages_)
    numbers.push_back(static_cast<uint32_t>(page.at().offset / shape_.page_bytes()));
  return numbers;
}

void MainRoom::AddPages(fabric::Batch& trip, const MainImage& image, size_t first, size_t end) const {
  const std::span<const std::byte> bytes(image.pages);
  for (size_t i = first; i < end; ++i) {
    const auto page = bytes.subspan(i * shape_.page_bytes(), shape_.page_bytes());
    trip.Add(Unreachable(Write(pages_[i].at(), page)));
  }
}

Task<Done> MainRoom::WriteEarly(Op& op, const MainImage& image) {
  if (pages_.size() <= kPagesOfCommit) co_return Done{};
  Publish();
  for (size_t first = kPagesOfCommit; first < pages_.size(); first += kPagesOfCommit) {
    fabric::Batch trip(op, fabric::Order::kInOrder);
    AddPages(trip, image, first, std::min(first + kPagesOfCommit, pages_.size()));
    co_await trip;
  }
  Unpublish();
  co_return Done{};
}

void MainRoom::AddWrites(fabric::Batch& trip, const MainImage& image) const {
  AddPages(trip, image, 0, std::min(kPagesOfCommit, pages_.size()));
  trip.Add(Unreachable(Write(head_.at(), image.head)));
}

void MainRoom::Publish() {
  head_.Publish();
  for (Unpublished& page : pages_) page.Publish();
}

void MainRoom::Unpublish() {
  head_.Unpublish();
  for (Unpublished& page : pages_) page.Unpublish();
}

void RetireMain(pool::Allocator& allocator, const Shape& shape, FarAddr at,
                const std::vector<uint32_t>& pages, uint64_t birth) {
  allocator.Retire(at, shape.HeadBytes(pages.size()), birth);
  for (const uint32_t page : pages)
    allocator.Retire(FarAddr(at.node, page * shape.page_bytes()), shape.page_bytes(), birth);
}

}  // namespace farside::index::sephash
