#include "pool/memory/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"

namespace farside::pool {
namespace {

// The header is hashed apart, so that the payload is not copied to stand behind it.
uint64_t Checksum(BlockHeader header, std::span<const std::byte> payload) {
  header.checksum = 0;
  return Hash64(payload, Hash64(std::as_bytes(std::span(&header, 1))));
}

}  // namespace

Status CheckBlockSizes(std::string_view key, std::string_view value) {
  if (key.size() > kMaxKeyBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the key has {} bytes; keys have at most {}", key.size(), kMaxKeyBytes));
  }
  if (value.size() > kMaxValueBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the value has {} bytes; values have at most {}", value.size(), kMaxValueBytes));
  }
  return OkStatus();
}

void EncodeBlock(std::span<std::byte> out, std::string_view key, std::string_view value, uint64_t hash,
                 bool marked) {
  assert(out.size() >= sizeof(BlockHeader) + key.size() + value.size());
  const uint32_t mark = marked ? BlockHeader::kMark : 0;
  BlockHeader header{.marked_key_bytes = static_cast<uint32_t>(key.size()) | mark,
                     .value_bytes = static_cast<uint32_t>(value.size()),
                     .hash = hash,
                     .checksum = 0};
  std::byte* payload = out.data() + sizeof(header);
  std::byte* end = std::copy_n(AsBytes(key).begin(), key.size(), payload);
  end = std::copy_n(AsBytes(value).begin(), value.size(), end);
  std::fill(end, out.data() + out.size(), std::byte{0});
  header.checksum = Checksum(header, std::span(payload, key.size() + value.size()));
  std::memcpy(out.data(), &header, sizeof(header));
}

Result<uint64_t> BlockBytesFromHeader(std::span<const std::byte> first_line) {
  BlockHeader header;
  if (first_line.size() < sizeof(header))
    return Error(ErrorCode::kCorrupt, "a block is shorter than its header");
  std::memcpy(&header, first_line.data(), sizeof(header));
  if (header.key_bytes() > kMaxKeyBytes || header.value_bytes > kMaxValueBytes) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("a block claims a key of {} and a value of {} bytes; it is damaged",
                             header.key_bytes(), header.value_bytes));
  }
  return BlockBytes(header.key_bytes(), header.value_bytes);
}

Result<BlockView> DecodeBlock(std::span<const std::byte> bytes, uint64_t prefix) {
  const Result<uint64_t> size = BlockBytesFromHeader(bytes);
  if (!size.ok()) return size.error();
  BlockHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const uint64_t used = sizeof(header) + header.key_bytes() + header.value_bytes;
  const uint64_t whole = RoundUp(prefix + used, kLine) - prefix;
  if (whole > bytes.size()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("a block of {} bytes was cut off at {}", whole, bytes.size()));
  }
  const std::span<const std::byte> payload =
      bytes.subspan(sizeof(header), header.key_bytes() + header.value_bytes);
  if (Checksum(header, payload) != header.checksum) {
    return Error(ErrorCode::kCorrupt, "the checksum of a block does not match its bytes");
  }
  const std::string_view text = AsText(payload);
  return BlockView{.key = text.substr(0, header.key_bytes()),
                   .value = text.substr(header.key_bytes()),
                   .hash = header.hash,
                   .marked = header.marked()};
}

}  // namespace farside::pool
