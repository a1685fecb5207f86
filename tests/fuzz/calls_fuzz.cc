// Calls to a node, whose handlers change its memory: an input says which words of a small region with a table
// hold what, and which requests come then, each of any bytes to any handler. A handler ends with an answer or
// an error, after a bounded number of accesses, and each of them inside of the region.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "fabric/service.h"
#include "index/continuity/request.h"
#include "pool/durability.h"
#include "pool/region/layout.h"
#include "store/engines.h"
#include "tests/engines/continuity/bare_table.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

namespace continuity = index::continuity;
using fabric::CallId;

constexpr uint64_t kRegionBytes = 16 * 1024;
constexpr continuity::Shape kShape(2, 1, 2, 1, 2);
constexpr size_t kMostPatches = 16;
constexpr size_t kMostCalls = 4;
// Of one Call, in words: more than twice what the longest one takes, which moves 32 pairs with all records.
constexpr uint64_t kMostAccesses = 32'768;

// A word of the region, as an input has it.
struct Patch {
  uint32_t word;
  uint32_t how;  // odd: the value is added to what stands there
  uint64_t value;
};
static_assert(sizeof(Patch) == 16);

struct Call {
  uint16_t engine;
  uint16_t operation;
  uint32_t request_bytes;  // these follow
};
static_assert(sizeof(Call) == 8);

class CheckedMemory final : public fabric::NodeMemory {
 public:
  explicit CheckedMemory(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  uint64_t bytes() const override { return bytes_.size(); }
  uint64_t Load(uint64_t offset) const override {
    Check(offset);
    return LoadU64(bytes_.data() + offset);
  }
  void Store(uint64_t offset, uint64_t word) override {
    Check(offset);
    StoreU64(bytes_.data() + offset, word);
  }
  // Another Call begins.
  void Restart() { accesses_ = 0; }

 private:
  void Check(uint64_t offset) const {
    Require(offset % 8 == 0 && offset < bytes() && bytes() - offset >= 8,
            "a handler stays inside of the region");
    Require(++accesses_ <= kMostAccesses, "the work of a handler is bounded");
  }
  void FlushLines(uint64_t offset, uint64_t size) override {
    Require(offset <= bytes() && size <= bytes() - offset, "what a handler flushes is inside of the region");
  }

  std::vector<std::byte> bytes_;
  mutable uint64_t accesses_ = 0;
};

// A region with a table of small and long records, and memory that a client may bring.
struct World {
  World() {
    store::RegisterHandlers(calls);
    continuity::PlainMemory memory(region);
    for (const char* const key : {"a", "b", "c", "d"}) {
      Require(client.Make(memory, {.key = key, .value = key}).ok(), "there is room");
      Require(client.Make(memory, {.key = key, .value = std::string(50, *key)}).ok(), "there is room");
    }
  }

  fabric::CallTable calls;
  std::vector<std::byte> region = continuity::EmptyTable(kShape, kRegionBytes);
  continuity::BareClient client{continuity::FirstFree(kShape)};
};
const World& TheWorld() {
  static const World world;
  return world;
}

void AddCall(Bytes& seed, CallId call, std::string_view request) {
  Append(seed, Call{call.engine, call.operation, static_cast<uint32_t>(request.size())});
  seed.insert(seed.end(), request.begin(), request.end());
}

std::string ChangeOf(index::ChangeKind kind, std::string_view key) {
  const uint64_t free = TheWorld().client.free();
  continuity::ChangeRequest request;
  request.head = {.root = continuity::kBareRoot,
                  .hash = Hash64(AsBytes(key)),
                  .delta = 3,
                  .block = {free, 64},
                  .group = free + 64,
                  .key_bytes = static_cast<uint32_t>(key.size()),
                  .value_bytes = 5,
                  .kind = kind};
  request.key = key;
  request.value = "value";
  return continuity::Encode(request);
}

}  // namespace

// Of each handler, a good request, alone and behind a word that has changed; and a table that grows.
std::vector<Bytes> Seeds() {
  const uint64_t next = TheWorld().client.free() + 4 * pool::kLine;
  const std::string grow = continuity::EncodeFixed(
      continuity::GrowRequest{.root = continuity::kBareRoot, .table = next, .doublings = 1});
  const std::string move = continuity::EncodeFixed(continuity::MoveRequest{.root = continuity::kBareRoot});
  std::vector<Bytes> rows;
  for (uint8_t kind = 0; kind < 8; ++kind) {
    for (const char* const key : {"a", "e"}) {
      Bytes& row = rows.emplace_back();
      AddCall(row, continuity::kChangeCall, ChangeOf(static_cast<index::ChangeKind>(kind), key));
    }
  }
  Bytes& grows = rows.emplace_back();
  AddCall(grows, continuity::kGrowCall, grow);
  AddCall(grows, continuity::kMoveCall, move);
  AddCall(grows, continuity::kChangeCall, ChangeOf(index::ChangeKind{}, "e"));
  const std::array<uint64_t, 4> ranges = {0, 64, 512, 4096};
  AddCall(rows.emplace_back(), pool::kMakeDurable, AsText(std::as_bytes(std::span(ranges))));

  std::vector<Bytes> seeds;
  for (size_t i = 0; i < rows.size(); ++i) {
    Bytes& good = seeds.emplace_back(Bytes{0});
    good.insert(good.end(), rows[i].begin(), rows[i].end());
    Bytes& damaged = seeds.emplace_back(Bytes{1});
    Append(damaged, Patch{static_cast<uint32_t>(continuity::kBareRoot / 8 + i), 1, 1});
    damaged.insert(damaged.end(), rows[i].begin(), rows[i].end());
  }
  return seeds;
}

void Try(Input input) {
  const World& world = TheWorld();
  CheckedMemory memory(world.region);
  for (size_t left = input.Take<uint8_t>() % (kMostPatches + 1); left > 0; --left) {
    const auto patch = input.Take<Patch>();
    const uint64_t at = patch.word % (kRegionBytes / 8) * 8;
    memory.Store(at, (patch.how % 2 != 0 ? memory.Load(at) : 0) + patch.value);
  }
  for (size_t i = 0; i < kMostCalls && !input.empty(); ++i) {
    const auto call = input.Take<Call>();
    const std::span<const uint8_t> request = input.TakeBytes(call.request_bytes);
    memory.Restart();
    static_cast<void>(world.calls.Handle(CallId(call.engine, call.operation), memory, fabric::ClientId{1},
                                         AsText(std::as_bytes(request))));
  }
}

}  // namespace farside::fuzz
