// Bytes: numbers in little-endian order at any address, text as bytes and back, and binary data in a
// form that people can read.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace farside {

namespace bytes_internal {

// Between the machine's order and little-endian; its own inverse.
template <std::unsigned_integral T>
constexpr T SwapIfBigEndian(T value) {
  if constexpr (std::endian::native == std::endian::little) return value;
  T swapped = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    swapped = static_cast<T>(swapped << 8 | ((value >> (8 * i)) & 0xff));
  }
  return swapped;
}

template <std::unsigned_integral T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);  // becomes one move; `from` needs no alignment
  return SwapIfBigEndian(value);
}

template <std::unsigned_integral T>
void Store(std::byte* to, T value) {
  value = SwapIfBigEndian(value);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace bytes_internal

// Far memory and the wire are little-endian. The address needs no alignment; its 2, 4 or 8 bytes must exist.
inline uint16_t LoadU16(const std::byte* from) { return bytes_internal::Load<uint16_t>(from); }
inline uint32_t LoadU32(const std::byte* from) { return bytes_internal::Load<uint32_t>(from); }
inline uint64_t LoadU64(const std::byte* from) { return bytes_internal::Load<uint64_t>(from); }
inline void StoreU16(std::byte* to, uint16_t value) { bytes_internal::Store(to, value); }
inline void StoreU32(std::byte* to, uint32_t value) { bytes_internal::Store(to, value); }
inline void StoreU64(std::byte* to, uint64_t value) { bytes_internal::Store(to, value); }

// The same memory under another type; nothing is copied.
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}
inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr bool IsPrintableAscii(char c) { return c >= 0x20 && c <= 0x7e; }

// For keys in messages: printable ASCII as it is, everything else as \xNN, and \ and " behind a
// backslash. Different keys never look alike, and the result can stand between quotes.
//   Escape(std::string_view("k\0\xff", 3)) is  k\x00\xff
std::string Escape(std::string_view text);
// For text that another process has sent, and that goes into a message or a log: the first `most` bytes,
// escaped, and "..." if there were more.
std::string EscapeAtMost(std::string_view text, size_t most);

// For people who look at far memory: 16 bytes per line, each line with its offset, the first one's being
// `offset`. No bytes make no lines.
//   00000040  6b 65 79 00 00 00 00 00  01 00 00 00 00 00 00 00  |key.............|
std::string HexDump(std::span<const std::byte> bytes, uint64_t offset = 0);

}  // namespace farside
