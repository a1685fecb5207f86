// What clients of shared memory may have left in the memory that they share when they died: a staging and
// sequences of any value. The node recovers them, frees those that no client holds, and keeps inside its
// region.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "fabric/memory/line_memory.h"
#include "fabric/memory/own_holds.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

using namespace fabric::memory;  // NOLINT(google-build-using-namespace): what is tried
using fabric::kLineBytes;

constexpr Holder kDead = 2;
constexpr uint64_t kRegionBytes = 32 * kLineBytes;

// A staging and some sequences, as an input has them.
struct Left {
  uint64_t sequence;
  uint64_t offset;
  uint64_t size;
  std::array<uint64_t, 8> bytes;
  std::array<uint64_t, 34> sequences;
};

struct Shared {
  alignas(kLineBytes) std::array<std::byte, kRegionBytes> region{};
  StripeTable stripes;
  Staging staging{};
};

}  // namespace

std::vector<Bytes> Seeds() {
  Left written{
      .sequence = 5 * kOneChange, .offset = 4 * kLineBytes + 8, .size = 48, .bytes = {}, .sequences = {}};
  written.bytes.fill(~uint64_t{0});
  written.sequences[4] = 5 * kOneChange + kDead;
  Left held = written;
  held.sequence = Staging::kNothing;
  held.sequences = {kDead, 1, kOneChange + kDead, kTheNode - 1, kTheNode};
  std::vector<Bytes> seeds(2);
  Append(seeds[0], written);
  Append(seeds[1], held);
  return seeds;
}

void Try(Input input) {
  const auto left = input.Take<Left>();
  const auto shared = std::make_unique<Shared>();
  shared->staging.sequence = left.sequence;
  shared->staging.offset = left.offset;
  shared->staging.size = left.size;
  for (size_t i = 0; i < left.bytes.size(); ++i) shared->staging.bytes[i] = left.bytes[i];
  for (size_t i = 0; i < left.sequences.size(); ++i) shared->stripes.sequences[i] = left.sequences[i];
  LineMemory memory(shared->region, shared->stripes);
  const auto changed = [&] {
    return std::count_if(shared->region.begin(), shared->region.end(),
                         [](std::byte byte) { return byte != std::byte{0}; });
  };
  memory.Recover(kDead, shared->staging);
  Require(!memory.Holds(kDead), "a holder that was recovered holds nothing");
  Require(changed() <= static_cast<ptrdiff_t>(fabric::kLineBytes), "one line is completed at most");
  memory.FreeStrays({}, OwnHolds());
  for (uint64_t line = 0; line < kRegionBytes / kLineBytes; ++line) {
    memory.Store(line * kLineBytes, 7);
    Require(memory.Load(line * kLineBytes) == 7, "lines that no client holds can be used");
  }
}

}  // namespace farside::fuzz
