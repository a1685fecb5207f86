#include "tests/damage/damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/bytes.h"
#include "pool/region/layout.h"

namespace farside::damage {
namespace {

constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kWordsPerLine = pool::kLine / kWordBytes;
// Of 64 bits: where pointers have the number of a node, a level or a count.
constexpr uint64_t kHighBits = 28;

// A word in the hands of a damage: the line that it stands in, and where.
struct Hit {
  std::span<std::byte> line;
  uint64_t word = 0;

  uint64_t Get() const { return LoadU64(line.data() + word * kWordBytes); }
  void Set(uint64_t value) const { StoreU64(line.data() + word * kWordBytes, value); }
};

// What a damage may look at besides its word.
struct Surroundings {
  Regions& regions;
  const Targets& targets;
  Random& random;

  Hit Choose() const {
    const Targets::Line line = targets.Choose(random);
    return {std::span(regions[line.node]).subspan(line.offset, pool::kLine), random.Below(kWordsPerLine)};
  }
};

void FlipBit(const Hit& hit, const Surroundings& around) {
  hit.Set(hit.Get() ^ uint64_t{1} << around.random.Below(64));
}
void FlipHighBit(const Hit& hit, const Surroundings& around) {
  hit.Set(hit.Get() ^ uint64_t{1} << (63 - around.random.Below(kHighBits)));
}
void FlipSome(const Hit& hit, const Surroundings& around) {
  hit.Set(hit.Get() ^ (around.random.Next() & around.random.Next() & around.random.Next()));
}
void AnyWord(const Hit& hit, const Surroundings& around) { hit.Set(around.random.Next()); }
void Zero(const Hit& hit, const Surroundings&) { hit.Set(0); }
void AllOnes(const Hit& hit, const Surroundings&) { hit.Set(~uint64_t{0}); }
// Versions and counters of moves are odd while something is under way.
void MakeOdd(const Hit& hit, const Surroundings&) { hit.Set(hit.Get() | 1); }
void RaiseOrLower(const Hit& hit, const Surroundings& around) {
  hit.Set(around.random.Chance(1, 2) ? hit.Get() + 1 : hit.Get() - 1);
}
void SmallNumber(const Hit& hit, const Surroundings& around) { hit.Set(around.random.Below(300)); }
// A pointer to another place, and perhaps back to where it stands: links become cycles.
void CopyOfWord(const Hit& hit, const Surroundings& around) { hit.Set(around.Choose().Get()); }
void CopyWithinLine(const Hit& hit, const Surroundings& around) {
  hit.Set(Hit{hit.line, around.random.Below(kWordsPerLine)}.Get());
}
void CopyOfLine(const Hit& hit, const Surroundings& around) {
  const Hit other = around.Choose();
  std::array<std::byte, pool::kLine> copy;
  std::memcpy(copy.data(), other.line.data(), copy.size());
  std::memcpy(hit.line.data(), copy.data(), copy.size());
}
void ZeroLine(const Hit& hit, const Surroundings&) {
  std::fill(hit.line.begin(), hit.line.end(), std::byte{0});
}
// The lock of a client that may be dead, alive, or never have been.
void HeldByAny(const Hit& hit, const Surroundings& around) {
  const auto slot = static_cast<uint32_t>(around.random.Below(6));
  const auto generation = static_cast<uint32_t>(around.random.Below(4));
  hit.Set(pool::LockWord::HeldBy(pool::Owner(slot, generation)).word());
}
void ZeroPage(const Hit&, const Surroundings& around) {
  std::vector<std::byte>& region = around.regions[around.random.Below(around.regions.size())];
  const uint64_t page = around.random.Below(region.size() / pool::kPage);
  const auto begin = region.begin() + static_cast<ptrdiff_t>(page * pool::kPage);
  std::fill(begin, begin + static_cast<ptrdiff_t>(pool::kPage), std::byte{0});
}

struct Kind {
  std::string_view name;
  uint32_t weight;
  void (*apply)(const Hit&, const Surroundings&);
};
constexpr auto kKinds = std::to_array<Kind>({{"a bit flipped", 8, FlipBit},
                                             {"a high bit flipped", 6, FlipHighBit},
                                             {"some bits flipped", 3, FlipSome},
                                             {"any word", 3, AnyWord},
                                             {"zero", 3, Zero},
                                             {"all ones", 2, AllOnes},
                                             {"odd", 4, MakeOdd},
                                             {"one more or less", 3, RaiseOrLower},
                                             {"a small number", 3, SmallNumber},
                                             {"a word from elsewhere", 6, CopyOfWord},
                                             {"another word of the line", 4, CopyWithinLine},
                                             {"a line from elsewhere", 3, CopyOfLine},
                                             {"a line of zeros", 2, ZeroLine},
                                             {"a lock", 4, HeldByAny},
                                             {"a page of zeros", 1, ZeroPage}});

const Kind& ChooseKind(Random& random) {
  uint64_t sum = 0;
  for (const Kind& kind : kKinds) sum += kind.weight;
  uint64_t left = random.Below(sum);
  size_t i = 0;
  while (left >= kKinds[i].weight) left -= kKinds[i++].weight;
  return kKinds[i];
}

// Most pools have one damage, some have a few, and a few have many.
uint64_t HowMany(Random& random) {
  if (random.Chance(1, 2)) return 1;
  return random.Chance(1, 16) ? 32 : 2 + random.Below(3);
}

bool IsText(std::byte byte) { return byte >= std::byte{0x20} && byte < std::byte{0x7f}; }

// Whether a word of the line is neither zero nor text.
bool MeansSomething(std::span<const std::byte> line) {
  for (uint64_t word = 0; word < kWordsPerLine; ++word) {
    const std::span<const std::byte> bytes = line.subspan(word * kWordBytes, kWordBytes);
    const bool is_zero = LoadU64(bytes.data()) == 0;
    if (!is_zero && !std::all_of(bytes.begin(), bytes.end(), IsText)) return true;
  }
  return false;
}

}  // namespace

Targets::Targets(const Regions& regions) {
  for (size_t node = 0; node < regions.size(); ++node) {
    region_bytes_.push_back(regions[node].size());
    for (uint64_t offset = 0; offset + pool::kLine <= regions[node].size(); offset += pool::kLine) {
      if (MeansSomething(std::span(regions[node]).subspan(offset, pool::kLine)))
        lines_.push_back({node, offset});
    }
  }
}

Targets::Line Targets::Choose(Random& random) const {
  if (!random.Chance(1, 16)) return lines_[random.Below(lines_.size())];
  const size_t node = random.Below(region_bytes_.size());
  return {node, random.Below(region_bytes_[node] / pool::kLine) * pool::kLine};
}

std::string Damage(Regions& regions, const Targets& targets, Random& random) {
  const Surroundings around{regions, targets, random};
  std::string done;
  for (uint64_t left = HowMany(random); left > 0; --left) {
    const Targets::Line line = targets.Choose(random);
    const Hit hit{std::span(regions[line.node]).subspan(line.offset, pool::kLine),
                  random.Below(kWordsPerLine)};
    const Kind& kind = ChooseKind(random);
    const uint64_t before = hit.Get();
    kind.apply(hit, around);
    done += fmt::format("{}{} at n{}+{:#x}: {:x} -> {:x}", done.empty() ? "" : "; ", kind.name, line.node,
                        line.offset + hit.word * kWordBytes, before, hit.Get());
  }
  return done;
}

}  // namespace farside::damage
