// Tables in damaged memory: an input says which words of a pool hold what, from the beginning, or from when
// so many verbs were posted, maybe between two READs of one operation; and all commands of a user are run on
// it (tests/damage). Each ends with an answer or an error.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
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
  uint64_t verbs;  // 0: from the beginning
};
static_assert(sizeof(Patch) == 24);
constexpr size_t kMostPatches = 16;
// All commands on one pool take some thousand.
constexpr uint64_t kMostVerbs = 8192;

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

damage::LaterDamage DamageOf(const Patch& patch, const damage::Regions& regions) {
  const size_t node = patch.node % regions.size();
  return {.verbs = patch.verbs % kMostVerbs,
          .node = node,
          .offset = patch.word % (regions[node].size() / 8) * 8,
          .value = patch.value,
          .adds = patch.how % 2 != 0};
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
      Append(seed, Patch{0, 1, word, 1, 0});
      Append(seed, Patch{0, 0, word + 1, value, 0});
      seeds.push_back(seed);
      // A word that changes, and changes back.
      Bytes& later = seeds.emplace_back(Bytes{static_cast<uint8_t>(pool)});
      Append(later, Patch{0, 0, word, value + 1, 300});
      Append(later, Patch{0, 0, word, value, 310});
    }
  }
  return seeds;
}

void Try(Input input) {
  const DamagedPool& pool = Pools()[input.Take<uint8_t>() % Pools().size()];
  std::vector<damage::LaterDamage> damages;
  for (size_t i = 0; i < kMostPatches && !input.empty(); ++i)
    damages.push_back(DamageOf(input.Take<Patch>(), pool.regions()));
  const damage::Findings found = pool.TryWith(pool.regions(), damage::Damaged::kAnyBytes, std::move(damages));
  for (const std::string& line : found.wrong) std::fprintf(stderr, "fuzz: %s\n", line.c_str());
  Require(found.wrong.empty(), "commands on a damaged pool end with an answer or an error");
}

}  // namespace farside::fuzz
