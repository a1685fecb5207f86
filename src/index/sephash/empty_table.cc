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
  return sizeof(Root) + shape.most_main_bytes() + shape.PartBytes(0) +
         segments * (shape.segment_bytes() + MainBytes(0, 0));
}

Task<FarAddr> EmptyTable::Allocate(Op& op, NodeId node, uint64_t bytes) {
  Unpublished& room = rooms_.emplace_back();
  if (!room.Reserve(pool_.allocator(node), bytes)) co_await room.FetchRoom(op);
  co_return room.at();
}

Task<FarAddr> EmptyTable::Make(Op& op, NodeId node) {
  if (pool_.member(node).geometry().region_bytes > kMostRegionBytes) {
    co_return Error(ErrorCode::kInvalidArgument,
                    fmt::format("node {} has more than {} bytes, which a sephash table cannot address; use "
                                "another engine",
                                fabric::Index(node), kMostRegionBytes));
  }
  std::vector<uint64_t> directory(shape_.PartBytes(0) / sizeof(uint64_t));
  for (uint64_t suffix = 0; suffix < shape_.PartEntries(0); ++suffix) {
    const FarAddr segment = co_await MakeSegment(op, node, suffix);
    directory[suffix] = segment.offset;
  }
  const FarAddr part = co_await Allocate(op, node, shape_.PartBytes(0));
  co_await op.InOrder(Unreachable(Write(part, std::as_bytes(std::span(directory)))));
  const FarAddr spare = co_await Allocate(op, node, shape_.most_main_bytes());
  Root root{};
  root.spare = DroppedBlock(spare.offset, shape_.most_main_bytes());
  root.parts[0] = part.offset;
  const FarAddr root_at = co_await Allocate(op, node, sizeof(Root));
  co_await op.InOrder(Unreachable(WriteObject(root_at, root)));
  co_return root_at;
}

Task<FarAddr> EmptyTable::MakeSegment(Op& op, NodeId node, uint64_t suffix) {
  const FarAddr segment_at = co_await Allocate(op, node, shape_.segment_bytes());
  MainContent empty;
  empty.merges = 1;
  empty.segment = segment_at.offset;
  const FarAddr main_at = co_await Allocate(op, node, empty.bytes());
  std::vector<std::byte> main(empty.bytes());
  EncodeMain(empty, main);
  const SegmentHeader header{.meta = MetaWord(kFirstEpoch, shape_.initial_bits, main_at.offset, main.size()),
                             .suffix = suffix};
  std::vector<std::byte> segment(shape_.segment_bytes());
  std::memcpy(segment.data(), &header, sizeof header);
  co_await op.InOrder(Unreachable(Write(main_at, main)), Unreachable(Write(segment_at, segment)));
  co_return segment_at;
}

}  // namespace farside::index::sephash
