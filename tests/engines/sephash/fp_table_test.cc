// Where a client expects the entries of a fingerprint, and what it reads if it was wrong.
#include "index/sephash/fp_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "index/sephash/main_segment.h"
#include "index/sephash/segment_reader.h"
#include "index/sephash/sephash.h"
#include "tests/support/table_world.h"

namespace farside::index::sephash {
namespace {

using fabric::FarAddr;
using fabric::NodeId;

constexpr uint32_t kPaperEntries = 113 * 64;
constexpr std::array kKinds = {FpTableKind::kNone, FpTableKind::kNaive, FpTableKind::kPoints};

// ---- MainSegments of all kinds -----------------------------------------------------------------------

using DrawFp = std::function<uint64_t(Random&)>;
const std::vector<std::pair<std::string, DrawFp>>& Distributions() {
  static const std::vector<std::pair<std::string, DrawFp>> all = {
      {"uniform", [](Random& random) { return random.Below(256); }},
      {"somewhat skewed", [](Random& random) { return random.Below(8) == 0 ? 0 : random.Below(256); }},
      {"every second one", [](Random& random) { return random.Below(128) * 2; }},
      {"the low half", [](Random& random) { return random.Below(128); }},
      {"mostly low", [](Random& random) { return random.Below(16) * random.Below(16); }},
      {"mostly high", [](Random& random) { return 255 - random.Below(16) * random.Below(16); }},
      {"the outermost two", [](Random& random) { return random.Below(2) * 255; }},
      {"the first one", [](Random&) { return uint64_t{0}; }},
      {"one in the middle", [](Random&) { return uint64_t{128}; }},
      {"the last one", [](Random&) { return uint64_t{255}; }},
  };
  return all;
}
constexpr std::array<uint32_t, 11> kSizes = {0, 1, 2, 3, 100, 255, 257, 1023, kPaperEntries, 65535, 70'001};

struct Drawn {
  std::string name;
  std::vector<Entry> entries;
  Starts starts;

  uint32_t size() const { return static_cast<uint32_t>(entries.size()); }
  EntryRange RangeOf(size_t fp) const {
    return {.first = starts[fp], .end = fp + 1 < kFingerprints ? starts[fp + 1] : size()};
  }
  // Whether 8 bits can tell how far each start is from where it would be if fingerprints were spread evenly.
  bool FitsPoints() const {
    const int64_t unit = std::max<int64_t>(size() / (4 * kFingerprints), 1);
    for (size_t fp = 0; fp < kFingerprints; ++fp) {
      const auto even = static_cast<int64_t>(uint64_t{size()} * fp / kFingerprints);
      if (std::abs(static_cast<int64_t>(starts[fp]) - even) > 127 * unit) return false;
    }
    return true;
  }
};

Drawn Draw(const std::string& name, const DrawFp& draw_fp, uint32_t entries, uint64_t seed) {
  Random random(seed);
  Drawn drawn{
      .name = fmt::format("{}, {} entries, seed {}", name, entries, seed), .entries = {}, .starts = {}};
  for (uint32_t i = 0; i < entries; ++i) {
    const auto tag = static_cast<Tag>(draw_fp(random) << 14 | random.Below(1 << 14));
    drawn.entries.push_back(Entry::OfBlock(0, tag, (uint64_t{i} + 1) * pool::kLine, pool::kLine));
  }
  std::sort(drawn.entries.begin(), drawn.entries.end());
  drawn.starts = StartsOf(drawn.entries);
  return drawn;
}

template <class Check>
void ForAll(Check check) {
  for (const auto& [name, draw_fp] : Distributions()) {
    for (const uint32_t entries : kSizes) check(Draw(name, draw_fp, entries, 1));
  }
  for (uint64_t seed = 2; seed <= 100; ++seed) {
    const auto& [name, draw_fp] = Distributions()[seed % Distributions().size()];
    check(Draw(name, draw_fp, static_cast<uint32_t>(Random(seed).Below(9000)), seed));
  }
}

MainRange Read(const Drawn& main, EntryRange range) {
  MainRange read;
  const auto from = std::as_bytes(std::span(main.entries).subspan(range.first, range.size()));
  read.Resize(range);
  const std::span<std::byte> into = std::as_writable_bytes(read.entries());
  std::copy(from.begin(), from.end(), into.begin());
  return read;
}

// ---- predictions -------------------------------------------------------------------------------------

TEST(SephashFpTable, Naive_EveryRangeHasTheEntriesAndOneMoreAtEachEnd) {
  // Given MainSegments with fingerprints of many distributions
  // When a naive table predicts where the entries of each fingerprint are
  // Expect all of them, one more at each end if there is one, and nothing else while 16 bits can count them
  ForAll([](const Drawn& main) {
    const FpTable table(FpTableKind::kNaive, main.starts, main.size());
    for (size_t fp = 0; fp < kFingerprints; ++fp) {
      const EntryRange has = main.RangeOf(fp);
      const EntryRange predicted = table.Predict(static_cast<uint8_t>(fp));
      const EntryRange wanted{.first = has.first - std::min<uint32_t>(has.first, 1),
                              .end = std::min(has.end + 1, main.size())};
      ASSERT_LE(predicted.first, wanted.first) << main.name << ", fingerprint " << fp;
      ASSERT_GE(predicted.end, wanted.end) << main.name << ", fingerprint " << fp;
      ASSERT_LE(predicted.end, main.size()) << main.name << ", fingerprint " << fp;
      if (main.size() <= 0xffff) {
        ASSERT_EQ(predicted, wanted) << main.name << ", fingerprint " << fp;
      }
      ASSERT_TRUE(Read(main, predicted).HasAllOf(static_cast<uint8_t>(fp), main.size())) << main.name;
    }
  });
}

TEST(SephashFpTable, RecordPoints_EveryRangeHasTheEntriesUnlessADeltaWasClamped) {
  // Given MainSegments with fingerprints of many distributions
  // When a table of record points predicts where the entries of each fingerprint are
  // Expect all of them, with one more at each end, so that one READ is enough; unless a start is farther from
  // an even distribution than a point can say
  int fitting = 0;
  int others = 0;
  ForAll([&](const Drawn& main) {
    const bool fits = main.FitsPoints();
    ++(fits ? fitting : others);
    const FpTable table(FpTableKind::kPoints, main.starts, main.size());
    for (size_t fp = 0; fp < kFingerprints; ++fp) {
      const EntryRange predicted = table.Predict(static_cast<uint8_t>(fp));
      ASSERT_LE(predicted.first, predicted.end) << main.name << ", fingerprint " << fp;
      ASSERT_LE(predicted.end, main.size()) << main.name << ", fingerprint " << fp;
      if (!fits) continue;
      ASSERT_LE(predicted.first, main.RangeOf(fp).first) << main.name << ", fingerprint " << fp;
      ASSERT_GE(predicted.end, main.RangeOf(fp).end) << main.name << ", fingerprint " << fp;
      ASSERT_TRUE(Read(main, predicted).HasAllOf(static_cast<uint8_t>(fp), main.size())) << main.name;
    }
  });
  EXPECT_GT(fitting, 50);
  EXPECT_GT(others, 10);
}

TEST(SephashFpTable, None_EveryRangeIsTheWholeMainSegment) {
  // Given a client that keeps no tables
  // When it asks for the entries of a fingerprint
  // Expect all entries there are
  const Drawn main = Draw("uniform", Distributions()[0].second, 500, 1);
  const FpTable table(FpTableKind::kNone, main.starts, main.size());
  for (size_t fp = 0; fp < kFingerprints; ++fp)
    EXPECT_EQ(table.Predict(static_cast<uint8_t>(fp)), (EntryRange{.first = 0, .end = 500}));
  EXPECT_EQ(table.heap_bytes(), 0u);
}

TEST(SephashFpTable, RecordPoints_TakeAThirdOfANaiveTableOrLess) {
  // Given uniform MainSegments as large as the paper's
  // When a client remembers them
  // Expect that record points take at least 67 % less memory than naive tables, and read few more entries
  uint64_t read_by_naive = 0;
  uint64_t read_by_points = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Drawn main = Draw("uniform", Distributions()[0].second, kPaperEntries, seed);
    const FpTable naive(FpTableKind::kNaive, main.starts, main.size());
    const FpTable points(FpTableKind::kPoints, main.starts, main.size());
    EXPECT_LE(100 * (sizeof(FpTable) + points.heap_bytes()), 33 * (sizeof(FpTable) + naive.heap_bytes()))
        << main.name;
    for (size_t fp = 0; fp < kFingerprints; ++fp) {
      read_by_naive += naive.Predict(static_cast<uint8_t>(fp)).size();
      read_by_points += points.Predict(static_cast<uint8_t>(fp)).size();
    }
  }
  EXPECT_LE(read_by_points, 3 * read_by_naive);
}

// ---- what is read ------------------------------------------------------------------------------------

TEST(SephashFpTable, ARangeThatSaysItHasAllOfAFingerprintHasAll) {
  // Given a few entries, several of them with the same fingerprint
  // When any range of them was read
  // Expect that it claims to have all entries with a fingerprint only if it has, and that the whole claims so
  const Drawn main = Draw(
      "few", [](Random& random) { return random.Below(5) * 60; }, 14, 3);
  for (uint32_t first = 0; first <= main.size(); ++first) {
    for (uint32_t end = first; end <= main.size(); ++end) {
      const MainRange read = Read(main, {.first = first, .end = end});
      for (size_t fp = 0; fp < kFingerprints; ++fp) {
        const EntryRange has = main.RangeOf(fp);
        const bool complete = has.size() == 0 || (first <= has.first && end >= has.end);
        const bool claims = read.HasAllOf(static_cast<uint8_t>(fp), main.size());
        EXPECT_TRUE(complete || !claims) << first << " to " << end << ", fingerprint " << fp;
        EXPECT_TRUE(claims || end - first < main.size()) << "fingerprint " << fp;
      }
    }
  }
}

// A client, and room in far memory for the pages of one MainSegment.
class Reading {
 public:
  Reading() : member_(world_, "sephash", MakeSephashEngine, {}) {}

  // Pages stand in far memory in another order than in the MainSegment.
  void Store(const Drawn& main) {
    const Shape& shape = options_.shape;
    const auto bytes = std::as_bytes(std::span(main.entries));
    const uint64_t pages = shape.PagesOf(main.size());
    ASSERT_LE(kPages + pages * shape.page_bytes(), world_.memory().size());
    pages_.clear();
    for (uint64_t i = 0; i < pages; ++i) {
      const uint64_t offset = kPages + (pages - 1 - i) * shape.page_bytes();
      const auto page = bytes.subspan(i * shape.page_bytes());
      const auto some = page.first(std::min<size_t>(page.size(), shape.page_bytes()));
      std::copy(some.begin(), some.end(), world_.memory().subspan(offset).begin());
      pages_.push_back(static_cast<uint32_t>(offset / shape.page_bytes()));
    }
  }
  MainRange ReadAllOf(const FpTable& table, uint8_t fp) {
    MainRange range;
    member_.Now(ReadInto(table, fp, range));
    return range;
  }
  const std::string& problem() const { return world_.problem; }

 private:
  // Free memory at the end of the region.
  static constexpr uint64_t kPages = 3 << 20;

  Task<Done> ReadInto(const FpTable& table, uint8_t fp, MainRange& range) {
    fabric::Op op(member_.client(), fabric::OpKind::kSearch);
    SegmentReader reader(options_, member_.pool());
    const KnownMain main{.at = FarAddr(NodeId{0}, 0), .merges = 1, .table = table, .pages = pages_};
    co_await reader.ReadRange(op, main, fp, range);
    co_return Done{};
  }

  const Options options_;
  TableWorld world_;
  TableMember member_;
  std::vector<uint32_t> pages_;
};

TEST(SephashFpTable, WhateverATablePredicts_AReaderEndsWithAllEntriesOfTheFingerprint) {
  // Given MainSegments with fingerprints of many distributions, in far memory
  // When a client reads the entries of a fingerprint, beginning with what a table of any kind predicts
  // Expect exactly the entries that have it, also where the prediction was wrong
  Reading reading;
  ForAll([&](const Drawn& main) {
    reading.Store(main);
    for (const FpTableKind kind : kKinds) {
      const FpTable table(kind, main.starts, main.size());
      // Of large MainSegments some fingerprints only, with the outermost ones.
      for (size_t fp = 0; fp<kFingerprints; fp += main.size()> 1000 ? 51 : 3) {
        const EntryRange has = main.RangeOf(fp);
        const MainRange read = reading.ReadAllOf(table, static_cast<uint8_t>(fp));
        std::vector<Entry> of_fp;
        for (const Entry& entry : read.entries()) {
          if (entry.fp() == fp) of_fp.push_back(entry);
        }
        const std::vector<Entry> wanted(main.entries.begin() + has.first, main.entries.begin() + has.end);
        ASSERT_EQ(of_fp, wanted) << main.name << ", fingerprint " << fp;
      }
    }
  });
  EXPECT_EQ(reading.problem(), "");
}

TEST(SephashFpTable, TheTableIsOfAnotherMainSegment_AReaderStillFindsAllEntries) {
  // Given a table whose starts are those of another MainSegment with as many entries
  // When a client reads by it
  // Expect all entries that have the fingerprint: what a table says is no more than a hint
  Reading reading;
  const Drawn main = Draw("mostly low", Distributions()[4].second, 3000, 1);
  const Drawn other = Draw("mostly high", Distributions()[5].second, 3000, 1);
  reading.Store(main);
  for (const FpTableKind kind : {FpTableKind::kNaive, FpTableKind::kPoints}) {
    const FpTable table(kind, other.starts, other.size());
    for (size_t fp = 0; fp < kFingerprints; ++fp) {
      const MainRange read = reading.ReadAllOf(table, static_cast<uint8_t>(fp));
      const auto count = std::count_if(read.entries().begin(), read.entries().end(),
                                       [fp](const Entry& entry) { return entry.fp() == fp; });
      EXPECT_EQ(static_cast<uint32_t>(count), main.RangeOf(fp).size()) << "fingerprint " << fp;
    }
  }
  EXPECT_EQ(reading.problem(), "");
}

}  // namespace
}  // namespace farside::index::sephash
