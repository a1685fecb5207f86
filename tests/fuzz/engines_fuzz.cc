// Tables in damaged memory: an input says which words of a pool hold what, and all commands of a user are run
// on it (tests/damage). Each ends with an answer or an error.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "store/engines.h"
#include "tests/damage/damaged_pool.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

using damage::DamagedPool;

// A word of a pool, as an input has it.
struct Patch {
  uint16_t node;
  uint16_t how;  // odd: the word is added to what stands there
  uint32_t word;
  uint64_t value;
};
static_assert(sizeof(Patch) == 16);
constexpr size_t kMostPatches = 16;

const std::vector<DamagedPool>& Pools() {
  static const std::vector<DamagedPool> pools = [] {
    std::vector<DamagedPool> all;
    for (const index::EngineEntry& engine : store::Engines()) {
      for (DamagedPool& pool : damage::PoolsOf(engine.name)) all.push_back(std::move(pool));
    }
    return all;
  }();
  return pools;
}

void Apply(const Patch& patch, damage::Regions& regions) {
  std::vector<std::byte>& region = regions[patch.node % regions.size()];
  std::byte* const at = region.data() + patch.word % (region.size() / 8) * 8;
  uint64_t word = 0;
  if (patch.how % 2 != 0) std::memcpy(&word, at, sizeof word);
  word += patch.value;
  std::memcpy(at, &word, sizeof word);
}

}  // namespace

// Of each pool, a word or two that hold something.
std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds;
  for (size_t pool = 0; pool < Pools().size(); ++pool) {
    const std::vector<std::byte>& region = Pools()[pool].regions().front();
    uint32_t found = 0;
    for (uint32_t word = 0; word < region.size() / 8; ++word) {
      uint64_t value = 0;
      std::memcpy(&value, region.data() + word * 8, sizeof value);
      if (value == 0 || (++found != 64 && found != 256)) continue;
      Bytes seed = {static_cast<uint8_t>(pool)};
      Append(seed, Patch{0, 1, word, 1});
      Append(seed, Patch{0, 0, word + 1, value});
      seeds.push_back(seed);
    }
  }
  return seeds;
}

void Try(Input input) {
  const DamagedPool& pool = Pools()[input.Take<uint8_t>() % Pools().size()];
  damage::Regions regions = pool.regions();
  for (size_t i = 0; i < kMostPatches && !input.empty(); ++i) Apply(input.Take<Patch>(), regions);
  const damage::Findings found = pool.TryWith(regions);
  for (const std::string& line : found.wrong) std::fprintf(stderr, "fuzz: %s\n", line.c_str());
  Require(found.wrong.empty(), "commands on a damaged pool end with an answer or an error");
}

}  // namespace farside::fuzz
