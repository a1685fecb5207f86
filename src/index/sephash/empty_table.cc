#include "index/sephash/empty_table.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "index/sephash/main_segment.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;

uint64_t EmptyTable::Bytes(const Shape& shape) {
  const uint64_t segments = shape.PartEntries(0);
  return sizeof(Root) + Root::kSpares * shape.MainBytes(Shape::kUsualPages) + shape.PartBytes(0) +
         segments * (shape.segment_bytes() + shape.MainBytes(0));
}

Task<FarAddr> EmptyTable::Make(Op& op, NodeId node, std::span<const std::byte> bytes) {
  Unpublished& room = rooms_.emplace_back();
  if (!room.Reserve(pool_.allocator(node), bytes.size())) co_await room.FetchRoom(op);
  room.Publish();
  co_await op.InOrder(Unreachable(Write(room.at(), bytes)));
  room.Unpublish();
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
  const FarAddr part = co_await Make(op, node, std::as_bytes(std::span(directory)));
  Root root{};
  for (SpareWord& spare : root.spares) {
    const FarAddr made = co_await MakeMain(op, node, 0, Shape::kUsualPages);
    spare = SpareWord::New(made.offset);
  }
  root.parts[0] = part.offset;
  const FarAddr root_at = co_await Make(op, node, std::as_bytes(std::span(&root, 1)));
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
  room.Publish();
  co_await trip;
  room.Unpublish();
  co_return room.at();
}

// The MainSegment names its CurSegment, and the other way round: the address of the CurSegment comes first.
Task<FarAddr> EmptyTable::MakeSegment(Op& op, NodeId node, uint64_t suffix) {
  Unpublished& segment = rooms_.emplace_back();
  if (!segment.Reserve(pool_.allocator(node), shape_.segment_bytes())) co_await segment.FetchRoom(op);
  const FarAddr main = co_await MakeMain(op, node, segment.at().offset, 0);
  const MetaWord meta(kFirstEpoch, shape_.initial_bits, main.offset, 0);
  const SegmentImage image = NewSegment(meta, suffix);
  segment.Publish();
  co_await op.InOrder(Unreachable(Write(segment.at(), BytesOf(image, shape_))));
  segment.Unpublish();
  co_return segment.at();
}

}  // namespace farside::index::sephash
