// What fsck finds in the chunks of a node: blocks, extents, and what tables reach of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "pool/fsck/node_check.h"
#include "pool/memory/block.h"

namespace farside::pool {

using fabric::Batch;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::NodeId;
using fabric::Order;
using fabric::Read;

namespace {

// Chunks whose bitmaps, and blocks whose bytes, are read in one trip.
constexpr uint64_t kChunksAtOnce = fabric::kAnsweredVerbsPerRoundTrip;
constexpr size_t kBlocksAtOnce = fabric::kAnsweredVerbsPerRoundTrip;
constexpr uint64_t kBytesAtOnce = uint64_t{1} << 20;

}  // namespace

// ---- what is reached ---------------------------------------------------------------------------------

void NodeCheck::SortMarks() {
  for (const Mark& mark : reached_.marks_) {
    const bool no_node = Index(mark.at.node) >= op_.client().region_bytes().size();
    if (mark.at.node != node_ && !(no_node && node_ == NodeId{0}))
      continue;  // the check of its node sees to it
    if (mark.at.node == node_ && carving_.ChunkOf(mark.at).has_value()) {
      marks_.push_back(&mark);
    } else {
      Damage(mark.at,
             fmt::format("{} points to {:#x} of node {}, which is not in any chunk", reached_.TableOf(mark),
                         mark.at.offset, Index(mark.at.node)),
             kDropTable);
    }
  }
  std::sort(marks_.begin(), marks_.end(), [](const Mark* a, const Mark* b) {
    return std::pair(a->at.offset, a->table) < std::pair(b->at.offset, b->table);
  });
}

// Those of the next chunk; chunks are asked for one after another.
std::span<const NodeCheck::Mark* const> NodeCheck::MarksIn(uint64_t chunk) {
  const size_t first = next_mark_;
  const uint64_t end = geometry_.chunk(chunk + 1);
  while (next_mark_ < marks_.size() && marks_[next_mark_]->at.offset < end) ++next_mark_;
  return std::span(marks_).subspan(first, next_mark_ - first);
}

void NodeCheck::ComplainOfMarks(std::span<const Mark* const> marks, std::string_view where) {
  for (const Mark* mark : marks) {
    Damage(mark->at,
           fmt::format("{} points to {} bytes at {:#x}, which is {}", reached_.TableOf(*mark), mark->bytes,
                       mark->at.offset, where),
           kDropTable);
  }
}

void NodeCheck::NoteReachedAgain(const Mark& first, const Mark& again) {
  if (first.table == again.table && !options_.no_client_runs) {
    // A client may have moved it while the table was walked.
    Note(again.at, fmt::format("{} reaches {:#x} in two ways", reached_.TableOf(again), again.at.offset),
         "check the table");
  } else if (first.table == again.table) {
    Damage(again.at, fmt::format("{} reaches {:#x} in two ways", reached_.TableOf(again), again.at.offset),
           kDropTable);
  } else {
    Damage(again.at,
           fmt::format("{} and {} both reach {:#x}", reached_.TableOf(first), reached_.TableOf(again),
                       again.at.offset),
           kDropTable);
  }
}

// ---- chunks ------------------------------------------------------------------------------------------

Task<Done> NodeCheck::CheckChunks() {
  const uint64_t chunks = geometry_.chunks();
  report_.counts.chunks = chunks;
  words_ =
      co_await ReadTable<ChunkWord>(geometry_.chunk_table(), chunks, geometry_.first_chunk(), "chunk table");
  for (uint64_t first = 0; first < chunks; first += kChunksAtOnce) {
    std::array<std::vector<uint64_t>, kChunksAtOnce> bitmaps;
    const uint64_t count = std::min(kChunksAtOnce, chunks - first);
    Batch batch(op_, Order::kTogether);
    for (uint64_t i = 0; i < count; ++i) {
      const ChunkWord word = words_[first + i];
      if (!carving_.IsSound(first + i, word) || word.state() != ChunkState::kBlocks) continue;
      bitmaps[i].resize(carving_.classes().shape(word.argument()).bitmap_words());
      batch.Add(
          ForMaintenance(Read(carving_.ChunkAt(first + i), std::as_writable_bytes(std::span(bitmaps[i])))));
    }
    co_await batch;
    for (uint64_t i = 0; i < count; ++i) CheckChunk(static_cast<uint32_t>(first + i), bitmaps[i]);
    if (options_.progress) options_.progress(first + count);
  }
  co_return Done{};
}

void NodeCheck::CheckChunk(uint32_t chunk, std::span<const uint64_t> bitmap) {
  const ChunkWord word = words_[chunk];
  const FarAddr at = carving_.WordAt(chunk);
  if (!carving_.IsSound(chunk, word)) {
    Damage(at, fmt::format("the word of chunk {} is {:#x}, which no client writes", chunk, word.word()),
           kRestore);
    report_.bytes.damaged += geometry_.chunk_bytes;
    return ComplainOfMarks(MarksIn(chunk), "in a damaged chunk");
  }
  switch (word.state()) {
    case ChunkState::kBlocks: return CheckChunkOfBlocks(chunk, word, bitmap);
    case ChunkState::kExtent: return CheckExtent(chunk, word);
    case ChunkState::kFree:
      ++report_.counts.chunks_free;
      report_.bytes.free_chunks += geometry_.chunk_bytes;
      return ComplainOfMarks(MarksIn(chunk), "in a free chunk");
    case ChunkState::kExtentRest:
      // A rest that is part of an extent is counted with it. The first chunk is freed last, so any other rest
      // was lost.
      if (!IsPartOfExtent(chunk)) {
        Damage(at,
               fmt::format("chunk {} is part of an extent at chunk {}, where there is none", chunk,
                           chunk - word.argument()),
               kRestore);
        report_.bytes.damaged += geometry_.chunk_bytes;
      }
      return ComplainOfMarks(MarksIn(chunk), "in the middle of an extent");
  }
}

// INVARIANT alloc/5: while the first chunk names an extent, a word {rest, d} at distance d is part of it.
bool NodeCheck::IsPartOfExtent(uint32_t chunk) const {
  const ChunkWord word = words_[chunk];
  if (word.state() != ChunkState::kExtentRest || !carving_.IsSound(chunk, word)) return false;
  const uint32_t head = chunk - word.argument();
  return words_[head].state() == ChunkState::kExtent && carving_.IsSound(head, words_[head]) &&
         words_[head].argument() > word.argument();
}

void NodeCheck::CheckOwner(uint32_t chunk, ChunkWord word) {
  const FarAddr at = carving_.WordAt(chunk);
  switch (FateOf(word.owner())) {
    case Fate::kNoOwner:
    case Fate::kAlive: break;
    case Fate::kDead:
      Note(at, fmt::format("chunk {} belongs to {}, which has died", chunk, NameOf(word.owner())), kAdopted);
      break;
    case Fate::kGone:
      Leak(at,
           fmt::format(
               "chunk {} belongs to {}, which is not registered any more: what is free in it stays unused",
               chunk, NameOf(word.owner())),
           kRestore);
      break;
    case Fate::kNonsense:
      Damage(at, fmt::format("chunk {} belongs to {}, which no client ever was", chunk, NameOf(word.owner())),
             kRestore);
      break;
  }
}

uint64_t* NodeCheck::Unreachable(Fate owner) {
  if (!options_.all_walked) return &report_.bytes.unknown;
  switch (owner) {
    case Fate::kAlive: return &report_.bytes.held;
    case Fate::kDead: return &report_.bytes.abandoned;
    case Fate::kGone:
    case Fate::kNonsense: return nullptr;
    case Fate::kNoOwner: break;
  }
  // In a chunk without owner, all that is free is marked. The rest waits at a client to be given back, or did
  // until that client died.
  if (other_clients_live_) return &report_.bytes.held;
  return clients_died_ ? &report_.bytes.abandoned : nullptr;
}

void NodeCheck::CheckChunkOfBlocks(uint32_t chunk, ChunkWord word, std::span<const uint64_t> bitmap) {
  ++report_.counts.chunks_of_blocks;
  CheckOwner(chunk, word);
  const SizeClasses::Shape& shape = carving_.classes().shape(word.argument());
  report_.bytes.overhead += geometry_.chunk_bytes - shape.blocks * shape.block_bytes;
  const Fate owner = FateOf(word.owner());
  // A client that claims a chunk clears its bitmap next. If it dies in between, the old bits stay, which does
  // no harm (ClaimFree).
  const bool may_be_unfinished = owner == Fate::kAlive || owner == Fate::kDead;
  for (uint32_t i = 0; i < shape.bitmap_words() && !may_be_unfinished; ++i) {
    if ((bitmap[i] & ~shape.word_mask(i)) == 0) continue;
    Damage(carving_.BitmapWordAt(chunk, i),
           fmt::format("the bitmap of chunk {} marks blocks that it does not have", chunk), kRestore);
  }
  const std::vector<bool> reached = LocateMarks(chunk, word);
  uint64_t leaked = 0;
  for (uint32_t block = 0; block < shape.blocks; ++block) {
    const bool free = (bitmap[block / 64] >> (block % 64) & 1) != 0;
    if (free && reached[block]) {
      Damage(carving_.BlockAt(chunk, word.argument(), block),
             fmt::format("block {} of chunk {} is reachable, and free", block, chunk), kDropTable);
      report_.bytes.damaged += shape.block_bytes;
    } else if (free || reached[block]) {
      (free ? report_.bytes.free_blocks : report_.bytes.reachable) += shape.block_bytes;
    } else if (uint64_t* count = Unreachable(owner)) {
      *count += shape.block_bytes;
    } else {
      report_.bytes.leaked += shape.block_bytes;
      ++leaked;
    }
  }
  if (leaked > 0) {
    Leak(carving_.ChunkAt(chunk),
         fmt::format("{} block{} of {} bytes in chunk {} {} neither free nor reachable", leaked,
                     leaked == 1 ? "" : "s", shape.block_bytes, chunk, leaked == 1 ? "is" : "are"),
         kSwept);
  }
}

// Which blocks of the chunk are reached.
std::vector<bool> NodeCheck::LocateMarks(uint32_t chunk, ChunkWord word) {
  const SizeClasses::Shape& shape = carving_.classes().shape(word.argument());
  std::vector<bool> reached(shape.blocks);
  const Mark* last = nullptr;
  for (const Mark* const& mark : MarksIn(chunk)) {
    const std::optional<BlockPosition> position = carving_.Locate(mark->at, mark->bytes);
    if (!position.has_value() || position->size_class != word.argument()) {
      ComplainOfMarks(std::span(&mark, 1), fmt::format("no block of chunk {}, whose blocks have {} bytes",
                                                       chunk, shape.block_bytes));
      continue;
    }
    if (reached[position->block]) {
      NoteReachedAgain(*last, *mark);
      continue;
    }
    reached[position->block] = true;
    last = mark;
    ++report_.counts.blocks_reachable;
    if (mark->is_block) blocks_.push_back(mark);
  }
  return reached;
}

void NodeCheck::CheckExtent(uint32_t head, ChunkWord word) {
  ++report_.counts.extents;
  CheckOwner(head, word);
  const uint32_t length = word.argument();
  uint64_t parts = 1;
  for (uint32_t i = 1; i < length; ++i) {
    if (IsPartOfExtent(head + i) && words_[head + i].argument() == i) ++parts;
  }
  const uint64_t bytes = parts * geometry_.chunk_bytes;
  if (parts != length) ++report_.counts.extents_broken;

  const Mark* reached = nullptr;
  for (const Mark* const& mark : MarksIn(head)) {
    const std::optional<BlockPosition> position = carving_.Locate(mark->at, mark->bytes);
    if (!position.has_value() || !position->is_extent() || position->block != length) {
      ComplainOfMarks(std::span(&mark, 1), fmt::format("in an extent of {} chunks", length));
    } else if (reached != nullptr) {
      NoteReachedAgain(*reached, *mark);
    } else {
      reached = mark;
    }
  }
  if (reached != nullptr && parts != length) {
    Damage(carving_.WordAt(head),
           fmt::format("the extent at chunk {} is reachable, but of its {} chunks {} are not part of it",
                       head, length, length - parts),
           kDropTable);
    report_.bytes.damaged += bytes;
  } else if (reached != nullptr) {
    ++report_.counts.blocks_reachable;
    report_.bytes.reachable += bytes;
    if (reached->is_block) blocks_.push_back(reached);
  } else if (uint64_t* count = Unreachable(FateOf(word.owner()))) {
    *count += bytes;
  } else {
    report_.bytes.leaked += bytes;
    Leak(carving_.WordAt(head),
         fmt::format("the extent of {} chunks at chunk {} is not reachable", length, head), kSwept);
  }
}

// ---- blocks ------------------------------------------------------------------------------------------

Task<Done> NodeCheck::CheckBlocks() {
  for (size_t first = 0; first < blocks_.size();) {
    std::vector<std::vector<std::byte>> bytes;
    Batch batch(op_, Order::kTogether);
    uint64_t total = 0;
    while (first + bytes.size() < blocks_.size() && bytes.size() < kBlocksAtOnce && total < kBytesAtOnce) {
      const Mark* block = blocks_[first + bytes.size()];
      bytes.emplace_back(std::max(block->bytes, kLine));
      total += bytes.back().size();
      batch.Add(ForMaintenance(Read(block->at, bytes.back())));
    }
    co_await batch;
    for (size_t i = 0; i < bytes.size(); ++i) {
      ++report_.counts.blocks_read;
      const Mark* block = blocks_[first + i];
      const uint64_t prefix = std::min<uint64_t>(block->prefix, bytes[i].size());
      const Result<BlockView> view = DecodeBlock(std::span(bytes[i]).subspan(prefix), prefix);
      if (view.ok()) continue;
      Damage(block->at,
             fmt::format("{} has a damaged block at {:#x}: {}", reached_.TableOf(*block), block->at.offset,
                         view.error().message()),
             "overwrite or delete its key");
    }
    first += bytes.size();
  }
  co_return Done{};
}

}  // namespace farside::pool
