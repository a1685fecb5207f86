#include "index/continuity/slot.h"

#include <cassert>
#include <cstring>
#include <span>

#include "base/bytes.h"

namespace farside::index::continuity {
namespace {

enum class Kind : uint8_t { kNone = 0, kSmall = 1, kFull = 2, kBlock = 3 };

constexpr uint8_t kKindMask = 3;
constexpr int kKeyShift = 3;

uint8_t FirstByte(Kind kind, size_t key_bytes) {
  return static_cast<uint8_t>(static_cast<size_t>(kind) | key_bytes << kKeyShift);
}

}  // namespace

Slot RecordSlot(std::string_view key, std::string_view value) {
  assert(FitsSlot(key.size(), value.size()));
  std::array<char, kSlotBytes> bytes{};
  const bool full = key.size() + value.size() == kMostInSlot;
  bytes[0] = static_cast<char>(FirstByte(full ? Kind::kFull : Kind::kSmall, key.size()));
  key.copy(bytes.data() + 1, key.size());
  value.copy(bytes.data() + 1 + key.size(), value.size());
  if (!full) bytes[kSlotBytes - 1] = static_cast<char>(value.size());
  Slot slot;
  std::memcpy(slot.words.data(), bytes.data(), bytes.size());
  return slot;
}

Slot BlockSlot(uint64_t offset, uint64_t bytes, uint64_t hash) {
  return Slot{{FirstByte(Kind::kBlock, 0), offset, bytes, hash}};
}

std::optional<SlotView> DecodeSlot(const Slot& slot) {
  const std::string_view bytes = AsText(std::as_bytes(std::span(slot.words)));
  const auto first = static_cast<uint8_t>(bytes[0]);
  const size_t key_bytes = first >> kKeyShift;
  if ((first & ~kKindMask & ((1 << kKeyShift) - 1)) != 0) return std::nullopt;
  const std::string_view payload = bytes.substr(1);
  switch (static_cast<Kind>(first & kKindMask)) {
    case Kind::kNone: return std::nullopt;
    case Kind::kSmall: {
      const auto value_bytes = static_cast<uint8_t>(bytes.back());
      if (key_bytes + value_bytes >= kMostInSlot) return std::nullopt;
      return SlotView{.key = payload.substr(0, key_bytes), .value = payload.substr(key_bytes, value_bytes)};
    }
    case Kind::kFull:
      return SlotView{.key = payload.substr(0, key_bytes), .value = payload.substr(key_bytes)};
    case Kind::kBlock:
      if (slot.words[0] != FirstByte(Kind::kBlock, 0)) return std::nullopt;
      return SlotView{
          .in_block = true, .offset = slot.words[1], .bytes = slot.words[2], .hash = slot.words[3]};
  }
  return std::nullopt;
}

}  // namespace farside::index::continuity
