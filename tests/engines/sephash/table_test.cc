// A sephash table as one or two clients use it: keys and values of all sizes, keys that are hard to tell
// apart, everything deleted, several memory nodes.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "pool/memory/block.h"
#include "pool/memory/reach.h"
#include "tests/engines/sephash/scenarios.h"
#include "tests/engines/sephash/world.h"
#include "tests/support/sanitized.h"

namespace farside::index::sephash {
namespace {

using Model = std::map<std::string, std::string>;

void ExpectHolds(World& world, Member& member, const Model& model) {
  for (const auto& [key, value] : model)
    ASSERT_EQ(member.Now(member.Get(key)) == value, true) << key.substr(0, 20);
  const auto listed = member.Now(member.List());
  EXPECT_TRUE(
      std::equal(listed.begin(), listed.end(), model.begin(), model.end(),
                 [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }))
      << listed.size() << " records and not " << model.size();
  EXPECT_EQ(world.problem, "");
}

class SephashShapes : public testing::TestWithParam<OptionMap> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, SephashShapes,
    testing::Values(OptionMap{}, OptionMap{{"entries", "2"}, {"main", "1"}, {"depth_bits", "1"}},
                    OptionMap{{"entries", "5"}, {"main", "2"}, {"segments", "4"}, {"fptable", "naive"}},
                    OptionMap{{"entries", "8"}, {"main", "4"}, {"filter", "no"}, {"zero_wait", "no"}},
                    OptionMap{{"entries", "4"}, {"main", "1"}, {"fptable", "none"}, {"split_by", "blocks"}},
                    OptionMap{{"entries", "126"}, {"main", "1"}, {"window", "0"}, {"depth_bits", "3"}}));

TEST_P(SephashShapes, RandomChangesByTwoClients_AsAMapHasThem) {
  // Given tables of all shapes on two nodes. When two clients change keys in turn, thousands of times.
  // Expect what a map says, from both of them, and that every byte is accounted for.
  World world({.region_bytes = 16 << 20, .nodes = 2});
  Member one(world, GetParam());
  auto other = std::make_unique<Member>(world, GetParam());
  Model model;
  Random random(1);
  for (int i = 0; i < 3000 / static_cast<int>(std::min<uint64_t>(kFewer, 4)); ++i) {
    Member& member = random.Below(2) == 0 ? one : *other;
    const std::string key = fmt::format("key {}", random.Below(300));
    const std::string value(random.Below(8) == 0 ? random.Below(600) : random.Below(30), 'a' + i % 26);
    switch (random.Below(6)) {
      case 0: {
        const bool inserted = member.Now(member.Insert(key, value));
        ASSERT_EQ(inserted, model.emplace(key, value).second);
        break;
      }
      case 1: {
        ASSERT_EQ(member.Now(member.Update(key, value)), model.contains(key));
        if (model.contains(key)) model[key] = value;
        break;
      }
      case 2: ASSERT_EQ(member.Now(member.Delete(key)), model.erase(key) == 1); break;
      case 3: ASSERT_EQ(member.Now(member.Get(key)), model.contains(key) ? model[key] : "absent"); break;
      default: {
        member.Now(member.Put(key, value));
        model[key] = value;
      }
    }
    if (i % 64 == 0) LetMemoryGo(world);
  }
  ExpectHolds(world, one, model);
  ExpectHolds(world, *other, model);
  const TableStats stats = one.Now(one.Stats());
  EXPECT_EQ(stats.records, model.size());
  other.reset();
  one.Audit();
  EXPECT_EQ(world.problem, "");
}

TEST_P(SephashShapes, EverythingIsDeletedAndPutAgain_MemoryIsUsedAgain) {
  // Given a table in a small pool. When all keys are put, deleted and put again, many times over. Expect that
  // memory suffices, because what was deleted is used again, and that no block is left in the end.
  World world({.region_bytes = 2 << 20});
  Member member(world, GetParam());
  constexpr int kKeys = 150;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < kKeys; ++i)
      member.Now(member.Put(fmt::format("k{}", i), std::string(300, static_cast<char>('a' + round))));
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(member.Now(member.Delete(fmt::format("k{}", i)))) << round;
    ASSERT_EQ(member.Now(member.List()).size(), 0u);
    LetMemoryGo(world);
    ASSERT_EQ(world.problem, "") << round;
  }
  const TableStats stats = member.Now(member.Stats());
  EXPECT_EQ(stats.records, 0u);
  EXPECT_EQ(stats.block_bytes, 0u);
  member.Audit();
  EXPECT_EQ(world.problem, "");
}

TEST(SephashTable, KeysAndValuesOfAllSizes_UpToTheLimits) {
  // Given keys of no bytes, of zeros, of ones, and of the most bytes that a block takes; and values of no
  // bytes and of many. When they are put, updated and deleted through several merges. Expect what a map says;
  // and that larger keys are refused.
  World world({.region_bytes = 32 << 20});
  Member member(world, {{"entries", "4"}, {"main", "2"}});
  Model model;
  std::vector<std::string> keys = {"",
                                   std::string(1, '\0'),
                                   std::string(8, '\0'),
                                   std::string(8, '\xff'),
                                   std::string(pool::kMaxKeyBytes, 'k'),
                                   std::string(pool::kMaxKeyBytes, 'l')};
  for (const size_t size : {39, 40, 41, 63, 64, 65, 255, 256, 4096}) keys.emplace_back(size, 's');
  const std::vector<size_t> sizes = {0, 1, 36, 40, 100, 300, 1000, 5000, 70'000, 1 << 20};
  for (size_t round = 0; round < 3; ++round) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string value(sizes[(i + round * 3) % sizes.size()], static_cast<char>('a' + round));
      member.Now(member.Put(keys[i], value));
      model[keys[i]] = value;
    }
    ExpectHolds(world, member, model);
    for (size_t i = round; i < keys.size(); i += 3) {
      EXPECT_TRUE(member.Now(member.Delete(keys[i])));
      model.erase(keys[i]);
    }
    ExpectHolds(world, member, model);
    LetMemoryGo(world);
  }
  EXPECT_FALSE(member.Try(member.Put(std::string(pool::kMaxKeyBytes + 1, 'k'), "v")).ok());
  member.Audit();
  EXPECT_EQ(world.problem, "");
}

TEST(SephashTable, ARootWhosePartsOverlap_IsRefusedBeforeTheyAreRead) {
  // Given a root that names the same bytes as one part of the directory after the other, up to half of the
  // region. When a client opens the table and looks for a key. Expect that it says that the root is damaged,
  // and has not READ those parts.
  World world;
  Member member(world, {});
  member.Now(member.Put("a key", "a value"));
  const size_t offset = world.roots[0].offset + offsetof(Root, parts);
  const uint64_t first = LoadU64(world.memory().data() + offset);
  constexpr size_t kParts = 19;
  for (size_t part = 1; part < kParts; ++part)
    StoreU64(world.memory().data() + offset + part * sizeof(uint64_t), first / 4096 * 4096);
  Member late(world, {});
  const auto bytes_read = [&late] {
    uint64_t bytes = 0;
    for (const auto outcome : {fabric::OpOutcome::kDone, fabric::OpOutcome::kFailed}) {
      for (const auto& purpose : late.tally(fabric::OpKind::kSearch, outcome).by_purpose)
        bytes += purpose.bytes_read;
    }
    return bytes;
  };
  const uint64_t before = bytes_read();
  const Result<std::string> got = late.Try(late.Get("a key"));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), ErrorCode::kCorrupt);
  EXPECT_NE(got.error().message().find("names a part of the directory that cannot be"), std::string::npos)
      << got.error().message();
  EXPECT_LE(bytes_read() - before, sizeof(Root));
}

TEST(SephashTable, KeysThatTheTagDoesNotTellApart_AreDifferentKeys) {
  // Given keys whose hashes agree in all bits that an entry has. When they are changed through merges and
  // splits. Expect that none is taken for another.
  EXPECT_EQ(KeysWithTheSameTag(), "");
}

TEST(SephashTable, LongKeysWithEqualBeginningsAndEqualTags_AreDifferentKeys) {
  // Given long keys that begin alike, beyond the first line of their blocks, and have the same tag. When they
  // are merged. Expect that the merge looks at all of each key.
  const std::string beginning(200, 'b');
  std::map<uint64_t, std::string> by_tag;
  std::vector<std::string> keys;
  for (int i = 0; keys.empty(); ++i) {
    const std::string key = beginning + std::to_string(i);
    const auto [known, is_new] = by_tag.emplace(TagBitsOf(HashOf(key)), key);
    if (!is_new) keys = {known->second, key};
  }
  World world;
  Member member(world, SmallRounds());
  Model model;
  for (int round = 0; round < 4; ++round) {
    for (const std::string& key : keys) {
      model[key] = fmt::format("{} of {}", round, key.substr(beginning.size()));
      member.Now(member.Put(key, model[key]));
    }
    ExpectHolds(world, member, model);
  }
  EXPECT_TRUE(member.Now(member.Delete(keys[0])));
  model.erase(keys[0]);
  for (int i = 0; i < 3; ++i) member.Now(member.Put("other", model["other"] = std::to_string(i)));
  ExpectHolds(world, member, model);
  member.Audit();
  EXPECT_EQ(world.problem, "");
}

TEST(SephashTable, KeysThatDoNotDivide_AreMergedOnAndOn) {
  // Given keys whose hashes end with the same bits, so that no split divides them. When there are more of
  // them than a MainSegment should have. Expect that it grows, that they are all found, and that the
  // directory does not.
  World world;
  Member member(world, {{"entries", "4"}, {"main", "1"}});
  Model model;
  for (int i = 0; i < 60; ++i) {
    const std::string key = KeyOf(5, 8, i);
    model[key] = std::to_string(i);
    member.Now(member.Put(key, model[key]));
  }
  ExpectHolds(world, member, model);
  EXPECT_EQ(DetailOf(member.Now(member.Stats()), "depth"), 0);
  member.Audit();
  EXPECT_EQ(world.problem, "");
}

// What of a table is reachable, and how much of that is records.
class Marks : public pool::Reach {
 public:
  void Mark(fabric::FarAddr block, uint64_t bytes) override { marked.emplace(block.offset, bytes); }
  void MarkBlock(fabric::FarAddr block, uint64_t bytes, uint64_t) override {
    ++records;
    Mark(block, bytes);
  }

  std::multiset<std::pair<uint64_t, uint64_t>> marked;  // offsets and sizes
  uint64_t records = 0;
};

// A table without records, without anything that was dropped, and with MainSegments that have no pages.
std::multiset<std::pair<uint64_t, uint64_t>> MarksOfEmpty(const World& world, const Shape& shape) {
  const Image image(world, shape);
  const Root root = image.root();
  std::multiset<std::pair<uint64_t, uint64_t>> marks = {{world.roots[0].offset, sizeof(Root)}};
  for (const SpareWord& spare : root.spares) {
    marks.emplace(spare.offset(), shape.HeadBytes(Shape::kUsualPages));
    for (uint64_t page = 0; page < Shape::kUsualPages; ++page) {
      const uint64_t number_at = spare.offset() + shape.NumbersOffset(Shape::kUsualPages) + page * 4;
      marks.emplace(image.At<uint32_t>(number_at) * shape.page_bytes(), shape.page_bytes());
    }
  }
  for (size_t part = 0; part < kMostParts && root.parts[part] != 0; ++part) {
    marks.emplace(root.parts[part], shape.PartBytes(part));
    for (uint64_t i = 0; i < shape.PartEntries(part); ++i) {
      const uint64_t suffix = shape.FirstOfPart(part) + i;
      if (image.SegmentAt(suffix) == 0) continue;
      marks.emplace(image.SegmentAt(suffix), shape.segment_bytes());
      marks.emplace(image.MetaAt(suffix).main(), shape.HeadBytes(0));
    }
  }
  return marks;
}

// Each operation closes one segment, when an epoch has passed.
void LetClosersFinish(Member& member) {
  uint64_t merges = 0;
  for (int quiet = 0; quiet < 4; ++quiet) {
    member.Now(member.Maintain());
    EXPECT_EQ(member.Now(member.Get("k0")), "absent");
    if (member.merge_counts().merges != merges) quiet = 0;
    merges = member.merge_counts().merges;
  }
}

TEST(SephashTable, EverythingIsDeletedAndEpochsPass_NothingIsLeftButAnEmptyTable) {
  // Given a table of several segments with large values. When all keys are deleted, in the order in which
  // they came or in the reverse one, and epochs pass while the client goes on.
  // Expect that every block is given back and every MainSegment is a head, and that fsck finds nothing lost.
  for (const bool reverse : {false, true}) {
    World world;
    Member member(world, {{"entries", "6"}, {"main", "2"}});
    const Shape shape = member.options().shape;
    constexpr int kKeys = 120;
    for (int i = 0; i < kKeys; ++i) member.Now(member.Put(fmt::format("k{}", i), std::string(3000, 'v')));
    ASSERT_GE(DetailOf(member.Now(member.Stats()), "segments"), 5);
    for (int i = 0; i < kKeys; ++i)
      ASSERT_TRUE(member.Now(member.Delete(fmt::format("k{}", reverse ? kKeys - 1 - i : i))));
    LetClosersFinish(member);
    Marks marks;
    member.Now(member.WalkTable(marks));
    EXPECT_EQ(marks.records, 0u);
    EXPECT_EQ(marks.marked, MarksOfEmpty(world, shape)) << (reverse ? "reverse" : "");
    member.Audit();
    EXPECT_EQ(world.problem, "");
  }
}

TEST(SephashTable, SegmentsBecomeEmptyOneByOneWhileEpochsPass_NothingIsLeftButAnEmptyTable) {
  // Given the same. When keys are deleted in the order of their segments, siblings first, or by chance, and
  // epochs pass meanwhile. Expect the same: a sibling gives its blocks back though slots of the segment that
  // it was split from named them, and the last segment is closed though nothing else waits for an epoch.
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    World world;
    Member member(world, {{"entries", "6"}, {"main", "2"}});
    Random random(seed);
    std::vector<std::string> keys;
    const uint64_t count = 20 + random.Below(150);
    for (uint64_t i = 0; i < count; ++i) keys.push_back(fmt::format("k{}", i));
    for (const std::string& key : keys) member.Now(member.Put(key, std::string(3000, 'v')));
    const bool by_segment = seed % 2 == 0;
    std::sort(keys.begin(), keys.end(),
              [](const auto& a, const auto& b) { return (HashOf(a) & 15) < (HashOf(b) & 15); });
    while (!keys.empty()) {
      const size_t next = by_segment ? keys.size() - 1 : random.Below(keys.size());
      ASSERT_TRUE(member.Now(member.Delete(keys[next])));
      keys.erase(keys.begin() + static_cast<ptrdiff_t>(next));
      if (random.Below(4) != 0) continue;
      member.Now(member.Maintain());
      member.Now(member.Get("k0"));
    }
    LetClosersFinish(member);
    Marks marks;
    member.Now(member.WalkTable(marks));
    EXPECT_EQ(marks.records, 0u) << seed;
    EXPECT_EQ(marks.marked, MarksOfEmpty(world, member.options().shape)) << seed;
    member.Audit();
    EXPECT_EQ(world.problem, "") << seed;
  }
}

}  // namespace
}  // namespace farside::index::sephash
