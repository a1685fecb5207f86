#include "workload/generator.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace farside::workload {
namespace {

constexpr int kDraws = 100'000;
constexpr uint64_t kRecords = 1000;

Shape ShapeOf(std::string_view mix, uint64_t seed = 1) {
  Shape shape;
  shape.mix = *FindMix(mix);
  shape.distribution = shape.mix.distribution;
  shape.records = kRecords;
  shape.seed = seed;
  return shape;
}

std::vector<uint64_t> Draw(const Shape& shape, uint64_t client) {
  Frontier frontier(shape.records);
  Generator generator(shape, frontier, client);
  std::vector<uint64_t> drawn;
  for (int i = 0; i < 1000; ++i) {
    const Request request = generator.Next();
    drawn.push_back(request.record * kActions + static_cast<uint64_t>(request.action));
  }
  return drawn;
}

TEST(Mix, TheLettersAreThoseOfYcsb) {
  // Given the names of the workloads. When many operations of each are drawn. Expect the shares that YCSB
  // has.
  struct Expected {
    std::string_view name;
    std::array<double, kActions> share;  // read, update, insert, read-modify-write, scan
  };
  const std::vector<Expected> all = {{"a", {0.5, 0.5, 0, 0}},      {"b", {0.95, 0.05, 0, 0}},
                                     {"c", {1, 0, 0, 0}},          {"d", {0.95, 0, 0.05, 0}},
                                     {"e", {0, 0, 0.05, 0, 0.95}}, {"f", {0.5, 0, 0, 0.5}}};
  for (const Expected& expected : all) {
    Frontier frontier(kRecords);
    Generator generator(ShapeOf(expected.name), frontier, 0);
    std::array<int, kActions> counts{};
    for (int i = 0; i < kDraws; ++i) {
      const Request request = generator.Next();
      ++counts[static_cast<size_t>(request.action)];
      if (request.action == Action::kInsert) frontier.Acknowledge(request.record);
    }
    for (size_t action = 0; action < kActions; ++action) {
      EXPECT_NEAR(counts[action] / static_cast<double>(kDraws), expected.share[action], 0.01)
          << expected.name << ", " << Name(static_cast<Action>(action));
    }
  }
}

TEST(Mix, UnknownNamesAreErrorsThatSayWhatThereIs) {
  // Given names that are none. Expect one line that helps.
  EXPECT_NE(FindMix("z").error().message().find("there is: load, a, b, c, d, e, f"), std::string::npos);
  EXPECT_NE(FindMix("").error().message().find("there is no workload ''"), std::string::npos);
  EXPECT_NE(ParseDistribution("normal").error().message().find("uniform, zipfian, latest"),
            std::string::npos);
}

TEST(Generator, SeedAndClientDecideEverything) {
  // Given seeds and clients. When they draw twice. Expect the same for the same seed and client, and else
  // something else.
  EXPECT_EQ(Draw(ShapeOf("a", 1), 0), Draw(ShapeOf("a", 1), 0));
  EXPECT_NE(Draw(ShapeOf("a", 1), 0), Draw(ShapeOf("a", 1), 1));
  EXPECT_NE(Draw(ShapeOf("a", 1), 0), Draw(ShapeOf("a", 2), 0));
}

TEST(Generator, ScansHaveAllLengthsAlike) {
  // Given workload e. When it draws. Expect that scans begin at a record that is there, and that each length
  // from 1 to 100 comes about as often as any other.
  Frontier frontier(kRecords);
  Generator generator(ShapeOf("e"), frontier, 0);
  std::vector<int> counts(kLongestScan + 1);
  for (int i = 0; i < kDraws; ++i) {
    const Request request = generator.Next();
    if (request.action != Action::kScan) continue;
    ASSERT_LT(request.record, kRecords);
    ASSERT_GE(request.length, 1u);
    ASSERT_LE(request.length, kLongestScan);
    ++counts[request.length];
  }
  for (size_t length = 1; length < counts.size(); ++length) EXPECT_NEAR(counts[length], 950, 200) << length;
}

TEST(Generator, UniformCoversAllRecordsEvenly) {
  // Given 1000 records. When 100,000 are drawn. Expect each about 100 times.
  Shape shape = ShapeOf("c");
  shape.distribution = Distribution::kUniform;
  Frontier frontier(kRecords);
  Generator generator(shape, frontier, 0);
  std::vector<int> counts(kRecords);
  for (int i = 0; i < kDraws; ++i) ++counts[generator.Next().record];
  for (const int count : counts) EXPECT_NEAR(count, 100, 60);
}

TEST(Generator, ZipfianHasTheSameFavouritesForAllClients) {
  // Given two clients. When both draw. Expect that the record which one draws most is that of the other, and
  // no neighbour of the next one.
  std::vector<uint64_t> favourites;
  for (const uint64_t client : {0, 1}) {
    Frontier frontier(kRecords);
    Generator generator(ShapeOf("c"), frontier, client);
    std::vector<int> counts(kRecords);
    for (int i = 0; i < kDraws; ++i) ++counts[generator.Next().record];
    favourites.push_back(std::max_element(counts.begin(), counts.end()) - counts.begin());
  }
  EXPECT_EQ(favourites[0], favourites[1]);
  EXPECT_EQ(favourites[0], Scramble(kRecords)(0));
}

TEST(Generator, LatestFollowsTheInserts) {
  // Given workload d on 1000 records. When it has inserted some hundred more. Expect that no read is of a
  // record that is not there, that the newest one is read most, and that old ones are read too.
  Frontier frontier(kRecords);
  Generator generator(ShapeOf("d"), frontier, 0);
  uint64_t newest_reads = 0;
  uint64_t reads = 0;
  bool old_read = false;
  uint64_t records = kRecords;
  for (int i = 0; i < 10'000; ++i) {
    const Request request = generator.Next();
    if (request.action == Action::kInsert) {
      EXPECT_EQ(request.record, records++);
      frontier.Acknowledge(request.record);
      continue;
    }
    ASSERT_LT(request.record, records);
    ++reads;
    if (request.record == records - 1) ++newest_reads;
    old_read |= request.record < kRecords / 2;
  }
  EXPECT_GT(records, kRecords + 300);
  EXPECT_GT(newest_reads, reads / 10);  // 1 / zeta(1500) is 13 %
  EXPECT_TRUE(old_read);
}

TEST(Frontier, GapsHideWhatIsBehindThem) {
  // Given three claims. When the last and the first are acknowledged, and then the one between. Expect that
  // the frontier never passes one that is missing.
  Frontier frontier(10);
  EXPECT_EQ(frontier.Claim(), 10u);
  EXPECT_EQ(frontier.Claim(), 11u);
  EXPECT_EQ(frontier.Claim(), 12u);
  frontier.Acknowledge(12);
  EXPECT_EQ(frontier.known(), 10u);
  frontier.Acknowledge(10);
  EXPECT_EQ(frontier.known(), 11u);
  frontier.Acknowledge(11);
  EXPECT_EQ(frontier.known(), 13u);
}

TEST(Frontier, OneMayLagFarBehind) {
  // Given a claim that is not acknowledged while 10,000 others are. When it is at last. Expect all of them.
  Frontier frontier(0);
  for (int i = 0; i <= 10'000; ++i) frontier.Claim();
  for (uint64_t record = 10'000; record > 0; --record) frontier.Acknowledge(record);
  EXPECT_EQ(frontier.known(), 0u);
  frontier.Acknowledge(0);
  EXPECT_EQ(frontier.known(), 10'001u);
}

}  // namespace
}  // namespace farside::workload
