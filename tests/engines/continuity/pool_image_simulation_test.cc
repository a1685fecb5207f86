// What a power cut leaves of a continuity table in the image of a real pool: it is opened as a pool is,
// swept, and fsck accounts for every byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "check/power/power_sweep.h"
#include "index/continuity/continuity.h"
#include "pool/memory/carving.h"
#include "pool/region/recover.h"
#include "tests/engines/continuity/bare_table.h"
#include "tests/engines/continuity/scenarios.h"
#include "tests/support/sanitized.h"
#include "tests/support/table_world.h"

namespace farside::index::continuity {
namespace {

constexpr uint64_t kRegionBytes = 640 * 1024;
// One state in so many is opened.
constexpr uint64_t kOpened = 4 * kFewer;

class Member : public TableMember {
 public:
  explicit Member(TableWorld& world)
      : TableMember(world, "continuity", MakeContinuityEngine, OneOfEach(/*with_group=*/true)) {}
};

// A durable pool with an empty table, whose clients call handlers and claim chunks by themselves.
class PoolImage {
 public:
  PoolImage() {
    TableWorld world({.region_bytes = kRegionBytes, .durable = true});
    Member member(world);
    geometry_ = world.geometries[0];
    root_ = member.roots()[0].offset;
    bytes_.assign(world.memory().begin(), world.memory().end());
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  uint64_t root() const { return root_; }

  BareClient NewClient() const {
    Root root{};
    std::memcpy(&root, bytes_.data() + root_, sizeof root);
    const auto take = [geometry = geometry_](fabric::NodeMemory& memory, uint64_t size) {
      return Claim(geometry, memory, size);
    };
    return BareClient(root_, {root.current.offset(), TableBytes(root.shape.pairs())}, take);
  }

  // Opens what has survived, and audits it. What is wrong, or empty; `records` is what there must be.
  std::string Open(std::span<const std::byte> survived, const BareModel& records) const {
    TableWorld world({.region_bytes = kRegionBytes, .durable = true});
    std::ranges::copy(survived, world.memory().begin());
    pool::Recover(world.memory(), geometry_);
    Member heir(world);
    for (const auto& [key, value] : records) {
      if (heir.Now(heir.Get(key)) != value) world.Complain("the key " + key + " has another value");
    }
    heir.Audit();
    return world.problem;
  }

 private:
  // A block in chunks of its own, whose words are durable (pool durable/5).
  static uint64_t Claim(const pool::Geometry& geometry, fabric::NodeMemory& memory, uint64_t size) {
    const pool::Carving carving(fabric::NodeId{0}, geometry);
    const pool::Owner owner(1, 1);
    const bool in_chunk = size <= carving.classes().largest();
    const uint64_t count = in_chunk ? 1 : carving.classes().ChunksOf(size);
    uint64_t first = 0;  // behind all that are in use
    for (uint64_t chunk = 0; chunk < geometry.chunks(); ++chunk) {
      if (memory.Load(geometry.chunk_word(chunk)) != 0) first = chunk + 1;
    }
    const uint32_t size_class = in_chunk ? carving.classes().ClassOf(size) : 0;
    const pool::ChunkWord head = in_chunk ? pool::ChunkWord(pool::ChunkState::kBlocks, size_class, owner)
                                          : pool::ChunkWord(pool::ChunkState::kExtent, count, owner);
    memory.Store(geometry.chunk_word(first), head.word());
    for (uint32_t i = 1; i < count; ++i) {
      const pool::ChunkWord rest(pool::ChunkState::kExtentRest, i, pool::Owner());
      memory.Store(geometry.chunk_word(first + i), rest.word());
    }
    memory.Flush(geometry.chunk_word(first), count * sizeof(uint64_t));
    memory.Drain();
    return in_chunk ? carving.BlockAt(first, size_class, 0).offset : geometry.chunk(first);
  }

  pool::Geometry geometry_;
  uint64_t root_ = 0;
  std::vector<std::byte> bytes_;
};

TEST(ContinuityPoolImage, PowerIsCutAtAnyMoment_NothingIsLostOrLeaked) {
  // Given a table of a pool that gets groups and grows, with records in slots and in blocks
  // When the power is cut at any moment, and some of the states that this may leave are opened
  // Expect every acknowledged change, and that fsck finds every byte free or reachable when the first client
  // has swept
  const PoolImage image;
  std::vector<BareChange> changes;
  for (int i = 0; i < 8; ++i) {
    changes.push_back({.key = fmt::format("k{}", i), .value = std::string(i % 2 == 0 ? 70 : 3, 'v')});
    changes.push_back({.key = fmt::format("k{}", i / 2), .value = fmt::format("w{}", i)});
    if (i % 4 == 3) changes.push_back({.kind = ChangeKind::kDelete, .key = fmt::format("k{}", i / 2)});
  }
  std::vector<BareModel> models(1);
  BareClient client = image.NewClient();
  std::vector<check::PowerSweep::Operation> operations;
  for (const BareChange& change : changes) {
    models.push_back(models.back());
    ApplyTo(models.back(), change);
    operations.emplace_back([&client, change](fabric::NodeMemory& memory) {
      const Result<Reply> made = client.Make(memory, change);
      EXPECT_TRUE(made.ok()) << made.error().ToString();
    });
  }
  uint64_t states = 0;
  uint64_t opened = 0;
  check::PowerSweep sweep(image.bytes(), {.most_states = 64, .samples = 16});
  sweep.Run(operations, [&](std::span<std::byte> survived, size_t acknowledged, size_t begun) {
    if (states++ % kOpened != 0) return;
    const auto records = BareView{.bytes = survived, .root_at = image.root()}.Records();
    ASSERT_TRUE(records.ok()) << records.error().message();
    const auto same = [](const auto& record, const auto& expected) {
      return record.first == expected.first && record.second == expected.second;
    };
    const bool is_new = std::ranges::equal(*records, models[begun], same);
    ASSERT_TRUE(is_new || std::ranges::equal(*records, models[acknowledged], same)) << "a change is lost";
    const std::string problem = image.Open(survived, models[is_new ? begun : acknowledged]);
    if (!problem.empty()) sweep.Stop();
    ASSERT_EQ(problem, "") << "change " << acknowledged;
    ++opened;
  });
  EXPECT_GE(opened, 1000 / kFewer);
  EXPECT_GE(client.groups(), 1u);
  EXPECT_GE(client.tables(), 1u);
  RecordProperty("states", std::to_string(states));
  RecordProperty("opened", std::to_string(opened));
}

}  // namespace
}  // namespace farside::index::continuity
