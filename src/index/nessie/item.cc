#include "index/nessie/item.h"

#include <cassert>
#include <cstring>

#include "base/hash.h"
#include "pool/memory/block.h"

namespace farside::index::nessie {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::Order;
using fabric::Read;

namespace {

uint64_t SealOf(ItemHeader header, std::span<const std::byte> block) {
  pool::BlockHeader of_block;
  std::memcpy(&of_block, block.data(), sizeof of_block);
  header.seal = of_block.checksum;
  return Hash64(std::as_bytes(std::span(&header, 1)));
}

// How many bytes the item that begins with these has.
Result<uint64_t> SizeOf(std::span<const std::byte> first_line) {
  pool::BlockHeader header;
  std::memcpy(&header, first_line.data() + sizeof(ItemHeader), sizeof header);
  const Result<uint64_t> block = pool::BlockBytesFromHeader(first_line.subspan(sizeof(ItemHeader)));
  if (!block.ok()) return block.error();
  return ItemBytes(header.key_bytes(), header.value_bytes);
}

}  // namespace

Result<Item> DecodeItem(std::span<const std::byte> bytes) {
  if (bytes.size() < pool::kLine) return Error(ErrorCode::kCorrupt, "an item is shorter than a line");
  const Result<uint64_t> size = SizeOf(bytes);
  if (!size.ok()) return size.error();
  if (*size != bytes.size())
    return Error(ErrorCode::kCorrupt, "an item is not as long as its word says; run farside fsck");
  const std::span<const std::byte> block = bytes.subspan(sizeof(ItemHeader));
  const Result<pool::BlockView> view = pool::DecodeBlock(block, sizeof(ItemHeader));
  if (!view.ok()) return view.error();
  ItemHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.seal != SealOf(header, block))
    return Error(ErrorCode::kCorrupt, "the seal of an item does not match its bytes; run farside fsck");
  return Item{.owner = pool::Owner::FromBits(header.owner),
              .moves = header.moves,
              .replaced = Word(header.replaced),
              .hash = view->hash,
              .key = view->key,
              .value = view->value,
              .bytes = bytes.size()};
}

Result<pool::BlockView> DecodeRecord(std::span<const std::byte> bytes) {
  if (bytes.size() < pool::kLine) return Error(ErrorCode::kCorrupt, "an item is shorter than a line");
  return pool::DecodeBlock(bytes.subspan(sizeof(ItemHeader)), sizeof(ItemHeader));
}

Task<Done> ReadItems(Op& op, fabric::NodeId node, std::span<ItemRead* const> reads) {
  assert(reads.size() <= kMostItemReads);
  fabric::SmallBatch<kMostItemReads> first(op, Order::kTogether);
  bool any_large = false;
  for (ItemRead* const read : reads) {
    const uint64_t bytes = read->word.bytes();
    any_large = any_large || bytes == 0;
    first.Add(ForBlock(
        Read(FarAddr(node, read->word.offset()), read->buffer.Resize(bytes == 0 ? pool::kLine : bytes))));
  }
  co_await first;
  if (!any_large) co_return Done{};
  fabric::SmallBatch<kMostItemReads> rest(op, Order::kTogether);
  for (ItemRead* const read : reads) {
    if (read->word.bytes() != 0) continue;
    const Result<uint64_t> size = SizeOf(read->buffer.bytes());
    if (!size.ok()) co_return size.error();
    rest.Add(ForBlock(Read(FarAddr(node, read->word.offset()), read->buffer.Resize(*size))));
  }
  co_await rest;
  co_return Done{};
}

Task<Done> ReadManyItems(Op& op, fabric::NodeId node, std::span<ItemRead* const> reads) {
  fabric::Batch batch(op, Order::kTogether);
  for (ItemRead* const read : reads) {
    const uint64_t bytes = read->word.bytes();
    if (bytes != 0) batch.Add(ForBlock(Read(FarAddr(node, read->word.offset()), read->buffer.Resize(bytes))));
  }
  co_await batch;
  for (ItemRead* const read : reads) {
    if (read->word.bytes() == 0) co_await ReadItem(op, node, *read);
  }
  co_return Done{};
}

Task<Item> ReadItem(Op& op, fabric::NodeId node, ItemRead& read) {
  ItemRead* const one = &read;
  co_await ReadItems(op, node, std::span(&one, 1));
  co_return read.Decode();
}

Task<uint64_t> BytesOfItem(Op& op, fabric::NodeId node, Word word) {
  if (word.bytes() != 0) co_return word.bytes();
  ItemRead read(word);
  const Item item = co_await ReadItem(op, node, read);
  co_return item.bytes;
}

void ItemDraft::Fill(pool::Owner owner, uint32_t moves, Word replaced, std::string_view key,
                     std::string_view value, uint64_t hash) {
  const std::span<std::byte> bytes = buffer_.Resize(this->bytes());
  const std::span<std::byte> block = bytes.subspan(sizeof(ItemHeader));
  pool::EncodeBlock(block, key, value, hash);
  ItemHeader header{.owner = owner.bits(), .moves = moves, .replaced = replaced.word(), .seal = 0};
  header.seal = SealOf(header, block);
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace farside::index::nessie
