// Items: what index words point to.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/kit/block_buffer.h"
#include "index/kit/unpublished.h"
#include "index/nessie/layout.h"
#include "pool/memory/block.h"
#include "pool/region/layout.h"

namespace farside::index::nessie {

// An item as it was read; views of the buffer.
struct Item {
  pool::Owner owner;
  uint32_t moves = 0;
  Word replaced;
  uint64_t hash = 0;
  std::string_view key;
  std::string_view value;
  uint64_t bytes = 0;  // as allocated

  // Whether it is an item of the key. A tombstone without a key is told by the hash: it is pending, and
  // replaces an item of the same hash, which has the key.
  bool IsOf(std::string_view a_key, uint64_t a_hash, bool is_pending) const {
    return hash == a_hash && (key == a_key || (is_pending && key.empty()));
  }
};

// What the bytes say, if they are a whole and undamaged item. They come from far memory: anything is
// possible.
Result<Item> DecodeItem(std::span<const std::byte> bytes);

// The same for what was read of a block that may be larger than its item: its key and its value.
Result<pool::BlockView> DecodeRecord(std::span<const std::byte> bytes);

// One of the items that a trip reads. It stays where it is: what was decoded are views of it.
struct ItemRead {
  explicit ItemRead(Word a_word = Word()) : word(a_word) {}
  ItemRead(const ItemRead&) = delete;
  ItemRead& operator=(const ItemRead&) = delete;

  Word word;
  BlockBuffer buffer;

  Result<Item> Decode() const { return DecodeItem(buffer.bytes()); }
};
inline constexpr size_t kMostItemReads = 2;

// READs some items, kMostItemReads at most, by one trip; by two if one of them is too large for its size to
// stand in its word.
Task<Done> ReadItems(fabric::Op& op, fabric::NodeId node, std::span<ItemRead* const> reads);
// The same for any number, where those that are too large are read one by one behind the others.
Task<Done> ReadManyItems(fabric::Op& op, fabric::NodeId node, std::span<ItemRead* const> reads);
// The same for one, decoded.
Task<Item> ReadItem(fabric::Op& op, fabric::NodeId node, ItemRead& read);

// Bytes of an item, as allocated; READs it if they do not stand in its word.
Task<uint64_t> BytesOfItem(fabric::Op& op, fabric::NodeId node, Word word);

// An item on its way into the table.
class ItemDraft : public Unpublished {
 public:
  ItemDraft() : Unpublished(pool::BlockUse::kRecords) {}

  // What it will hold; as many bytes as were asked for.
  void Fill(pool::Owner owner, uint32_t moves, Word replaced, std::string_view key, std::string_view value,
            uint64_t hash);
  fabric::WriteVerb Write() const {
    return fabric::ForBlock(fabric::Unreachable(fabric::Write(at(), buffer_.bytes())));
  }
  Word WordAs(Kind kind, uint64_t tag) const { return Word::Of(kind, tag, at().offset, bytes()); }

 private:
  BlockBuffer buffer_;
};

}  // namespace farside::index::nessie
