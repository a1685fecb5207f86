#include "index/sephash/empty_table.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <vector>

#include "index/sephash/main_segment.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

uint64_t EmptyTable::Bytes(const Shape& shape) {
  const uint64_t segments = shape.PartEntries(0);
  const uint64_t spare = shape.HeadBytes(Shape::kUsualPages) + Shape::kUsualPages * shape.page_bytes();
  return sizeof(Root) + Root::kSpares * spare + shape.PartBytes(0) +
         segments * (shape.segment_bytes() + shape.HeadBytes(0));
}

Task<FarAddr> EmptyTable::Allocate(Op& op, NodeId node, uint64_t bytes) {
  Unpublished& room = rooms_.emplace_back();
  if (!room.Reserve(pool_.allocator(node), bytes)) co_await room.FetchRoom(op);
  co_return room.at();
}

Task<FarAddr> EmptyTable::Make(Op& op, NodeId node) {
  if (pool_.member(node).geometry().region_bytes > shape_.most_region_bytes()) {
    co_return Error(ErrorCode::kInvalidArgument,
                    fmt::format("node {} has more than {} bytes, which a sephash table cannot address; use "
                                "another engine",
                                fabric::Index(node), shape_.most_region_bytes()));
  }
  std::vector<uint64_t> directory(shape_.PartBytes(0) / sizeof(uint64_t));
  for (uint64_t suffix = 0; suffix < shape_.PartEntries(0); ++suffix) {
    const FarAddr segment = co_await MakeSegment(op, node, suffix);
    directory[suffix] = segment.offset;
  }
  const FarAddr part = co_await Allocate(op, node, shape_.PartBytes(0));
  co_await op.InOrder(Unreachable(Write(part, std::as_bytes(std::span(directory)))));
  Root root{};
  for (SpareWord& spare : root.spares) {
    const FarAddr made = co_await MakeMain(op, node, 0, Shape::kUsualPages);
    spare = SpareWord::New(made.offset);
  }
  root.parts[0] = part.offset;
  const FarAddr root_at = co_await Allocate(op, node, sizeof(Root));
  co_await op.InOrder(Unreachable(WriteObject(root_at, root)));
  co_return root_at;
}

Task<FarAddr> EmptyTable::MakeMain(Op& op, NodeId node, uint64_t segment, uint64_t pages) {
  MainRoom& room = mains_.emplace_back(shape_, node);
  co_await room.Fetch(op, pool_.allocator(node), pages);
  MainContent empty;
  empty.merges = segment == 0 ? 0 : 1;
  empty.segment = segment;
  const MainImage image = EncodeMain(shape_, empty, room.numbers());
  fabric::Batch trip(op, fabric::Order::kInOrder);
  room.AddWrites(trip, image);
  co_await trip;
  co_return room.at();
}

Task<FarAddr> EmptyTable::MakeSegment(Op& op, NodeId node, uint64_t suffix) {
  const FarAddr segment_at = co_await Allocate(op, node, shape_.segment_bytes());
  const FarAddr main_at = co_await MakeMain(op, node, segment_at.offset, 0);
  const SegmentHeader header{.meta = MetaWord(kFirstEpoch, shape_.initial_bits, main_at.offset, 0),
                             .suffix = suffix};
  std::vector<std::byte> segment(shape_.segment_bytes());
  std::memcpy(segment.data(), &header, sizeof header);
  co_await op.InOrder(Unreachable(Write(segment_at, segment)));
  co_return segment_at;
}

}  // namespace farside::index::sephash
