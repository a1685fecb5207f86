#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace farside::fuzz {
namespace {

constexpr uint64_t kMostChanges = 8;

// Numbers at which sizes and offsets go wrong.
uint64_t OddNumber(Random& random) {
  constexpr std::array<uint64_t, 12> kOdd = {0,
                                             1,
                                             7,
                                             8,
                                             63,
                                             64,
                                             4095,
                                             4096,
                                             uint64_t{1} << 31,
                                             uint64_t{1} << 56,
                                             uint64_t{1} << 63,
                                             std::numeric_limits<uint64_t>::max()};
  const uint64_t number = random.Chance(1, 4) ? random.Next() : kOdd[random.Below(kOdd.size())];
  return random.Chance(1, 4) ? number - random.Below(16) : number;
}

// A number of 1, 2, 4 or 8 bytes, at a place that numbers have more often than not.
void SetNumber(Bytes& bytes, Random& random) {
  const size_t size = size_t{1} << random.Below(4);
  if (bytes.size() < size) return;
  size_t at = random.Below(bytes.size() - size + 1);
  if (random.Chance(3, 4)) at -= at % size;
  uint64_t number = 0;
  if (random.Chance(1, 3)) {
    std::memcpy(&number, bytes.data() + at, size);
    number += random.Below(33) - 16;
  } else {
    number = OddNumber(random);
  }
  std::memcpy(bytes.data() + at, &number, size);
}

void Insert(Bytes& bytes, Random& random) {
  const size_t at = random.Below(bytes.size() + 1);
  const Bytes more(1 + random.LogUniform(64), static_cast<uint8_t>(random.Next()));
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), more.begin(), more.end());
}

void Erase(Bytes& bytes, Random& random) {
  if (bytes.empty()) return;
  const size_t at = random.Below(bytes.size());
  const size_t size = std::min<size_t>(1 + random.LogUniform(64), bytes.size() - at);
  const auto from = bytes.begin() + static_cast<ptrdiff_t>(at);
  bytes.erase(from, from + static_cast<ptrdiff_t>(size));
}

// Copies a piece to another place, over what is there or between it.
void Repeat(Bytes& bytes, Random& random) {
  if (bytes.empty()) return;
  const size_t from = random.Below(bytes.size());
  const size_t size = std::min<size_t>(1 + random.LogUniform(256), bytes.size() - from);
  const Bytes piece(bytes.begin() + static_cast<ptrdiff_t>(from),
                    bytes.begin() + static_cast<ptrdiff_t>(from + size));
  const auto at = static_cast<ptrdiff_t>(random.Below(bytes.size() - size + 1));
  if (random.Chance(1, 2)) {
    std::copy(piece.begin(), piece.end(), bytes.begin() + at);
  } else {
    bytes.insert(bytes.begin() + at, piece.begin(), piece.end());
  }
}

void Change(Bytes& bytes, Random& random) {
  switch (random.Below(7)) {
    case 0:
      if (!bytes.empty()) bytes[random.Below(bytes.size())] ^= static_cast<uint8_t>(1u << random.Below(8));
      return;
    case 1:
      if (!bytes.empty()) bytes[random.Below(bytes.size())] = static_cast<uint8_t>(random.Next());
      return;
    case 2:
    case 3: return SetNumber(bytes, random);
    case 4: return Insert(bytes, random);
    case 5: return Erase(bytes, random);
    default: return Repeat(bytes, random);
  }
}

}  // namespace

Bytes MakeInput(const std::vector<Bytes>& seeds, Random& random) {
  Bytes input = seeds[random.Below(seeds.size())];
  if (random.Chance(1, 8)) {
    const Bytes& other = seeds[random.Below(seeds.size())];
    input.resize(random.Below(input.size() + 1));
    input.insert(input.end(), other.begin(), other.end());
  }
  for (uint64_t changes = random.Below(kMostChanges + 1); changes > 0; --changes) Change(input, random);
  if (input.size() > kMostInputBytes) input.resize(kMostInputBytes);
  return input;
}

}  // namespace farside::fuzz
