// A block: one key and its value, immutable once it is published, aligned to a line.
//
//   offset   0           4             8      16         24
//            | key size  | value size  | hash | checksum | key ... | value ...
//
// `hash` is the full hash of the key (engines keep only parts of it), `checksum` covers everything else. The
// highest bit of the key's size is a mark, which means what the engine says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "farside/result.h"
#include "pool/region/layout.h"

namespace farside::pool {

inline constexpr uint64_t kMaxKeyBytes = 64 * 1024;
inline constexpr uint64_t kMaxValueBytes = 64 * 1024 * 1024;

struct BlockHeader {
  static constexpr uint32_t kMark = uint32_t{1} << 31;
  uint32_t marked_key_bytes;
  uint32_t value_bytes;
  uint64_t hash;
  uint64_t checksum;

  uint64_t key_bytes() const { return marked_key_bytes & ~kMark; }
  bool marked() const { return (marked_key_bytes & kMark) != 0; }
};
static_assert(sizeof(BlockHeader) == 24);
static_assert(kMaxKeyBytes < BlockHeader::kMark);

// An error if a key or value is larger than a block may hold.
Status CheckBlockSizes(std::string_view key, std::string_view value);

// Bytes of the block, whole lines.
constexpr uint64_t BlockBytes(uint64_t key_bytes, uint64_t value_bytes) {
  return RoundUp(sizeof(BlockHeader) + key_bytes + value_bytes, kLine);
}

// Fills `out`, which has BlockBytes() bytes, or as many as are left of lines that begin with something else;
// what is behind the value becomes zero.
void EncodeBlock(std::span<std::byte> out, std::string_view key, std::string_view value, uint64_t hash,
                 bool marked = false);

struct BlockView {
  std::string_view key;
  std::string_view value;
  uint64_t hash = 0;
  bool marked = false;
};

// How many bytes the block that begins with these has, from its header; kCorrupt if no block is so large.
Result<uint64_t> BlockBytesFromHeader(std::span<const std::byte> first_line);

// What the bytes say, if they are a whole and undamaged block. They come from far memory: anything is
// possible. `prefix`: bytes in front of the block in its first line.
Result<BlockView> DecodeBlock(std::span<const std::byte> bytes, uint64_t prefix = 0);

}  // namespace farside::pool
