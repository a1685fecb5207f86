// Rows and rules, plots, and how even a throughput is: what `farside paper` makes of its measurements.
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tools/json.h"
#include "tools/paper/continuity_model.h"
#include "tools/paper/cuckoo_model.h"
#include "tools/paper/nessie.h"
#include "tools/paper/paper.h"
#include "tools/paper/plot.h"
#include "tools/paper/row.h"
#include "tools/paper/timeline.h"
#include "tools/paper/trips.h"

namespace farside::tools::paper {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr Nanos kMilli = std::chrono::milliseconds(1);

TEST(PaperRule, HoldsUpToItsLimitAndSaysSo) {
  // Given the rules that there are. When they are asked about their limit and its neighbours. Expect that
  // only those with "or equal" hold there.
  EXPECT_TRUE(Rule::AtMost(1.05).Holds(1.05));
  EXPECT_FALSE(Rule::AtMost(1.05).Holds(1.0500001));
  EXPECT_TRUE(Rule::AtLeast(0.6).Holds(0.6));
  EXPECT_FALSE(Rule::AtLeast(0.6).Holds(0.5999));
  EXPECT_FALSE(Rule::Above(0.97).Holds(0.97));
  EXPECT_TRUE(Rule::Above(0.97).Holds(0.971));
  EXPECT_FALSE(Rule::Below(1024).Holds(1024));
  EXPECT_TRUE(Rule::Below(1024).Holds(1023));
  EXPECT_TRUE(Rule::Reported().Holds(-1e9));
  EXPECT_EQ(Rule::AtMost(1.05).Text(Unit::kTrips), "<= 1.05");
  EXPECT_EQ(Rule::AtLeast(0.45).Text(Unit::kShare), ">= 45 %");
  EXPECT_EQ(Rule::Above(0.97).Text(Unit::kShare), "> 97 %");
  EXPECT_EQ(Rule::Below(1024).Text(Unit::kBytes), "< 1024 B");
  EXPECT_EQ(Rule::Reported().Text(Unit::kTrips), "reported");
}

TEST(PaperRule, NoRuleHoldsForWhatIsNotANumber) {
  // Given a figure that could not be measured. When it is judged. Expect that nothing holds, not even
  // "reported".
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  for (const Rule& rule :
       {Rule::AtMost(1), Rule::AtLeast(1), Rule::Above(1), Rule::Below(1), Rule::Reported()}) {
    EXPECT_FALSE(rule.Holds(unknown)) << rule.Text(Unit::kNumber);
  }
  EXPECT_EQ(Format(Unit::kTrips, unknown), "unknown");
}

struct Figures {
  double trips = 0;
};

TEST(PaperRow, ClaimsMeetFigures) {
  // Given two claims about a measurement. When they are compared with it. Expect a row for each, and a
  // verdict over all.
  constexpr std::array claims = {
      Claim<Figures>{"search", 1.0, Rule::AtMost(1.05), Unit::kTrips,
                     [](const Figures& f) { return f.trips; }},
      Claim<Figures>{"twice", std::nullopt, Rule::Reported(), Unit::kTrips,
                     [](const Figures& f) { return 2 * f.trips; }},
  };
  const std::vector<Row> good = Compare<Figures>(claims, {1.01});
  ASSERT_EQ(good.size(), 2u);
  EXPECT_EQ(good[0].metric, "search");
  EXPECT_EQ(good[0].paper, 1.0);
  EXPECT_DOUBLE_EQ(good[1].ours, 2.02);
  EXPECT_TRUE(AllHold(good));
  EXPECT_FALSE(AllHold(Compare<Figures>(claims, {1.06})));
}

TEST(PaperRow, FiguresAreWrittenForPeople) {
  // Given figures of every unit. When they are formatted. Expect what a person would write.
  EXPECT_EQ(Format(Unit::kTrips, 1.0094), "1.009");
  EXPECT_EQ(Format(Unit::kShare, 0.9769), "97.7 %");
  EXPECT_EQ(Format(Unit::kBytes, 328), "328 B");
  EXPECT_EQ(Format(Unit::kBytes, 12.04), "12.0 B");
  EXPECT_EQ(Format(Unit::kBytes, 2.36e6), "2.36 MB");
  EXPECT_EQ(Format(Unit::kOpsPerSecond, 1234567.4), "1,234,567/s");
  EXPECT_EQ(Format(Unit::kTimes, 4.296), "4.30 x");
  EXPECT_EQ(Format(Unit::kMicros, 4.3), "4.30 us");
  EXPECT_EQ(Format(Unit::kNumber, 0.1), "0.1");
}

Report OneOfTwoHolds() {
  Report report;
  report.set_up = "Two things.";
  report.rows = {{"good", 1.0, 1.0, Rule::AtMost(1.05), Unit::kTrips},
                 {"bad", std::nullopt, 2.0, Rule::AtMost(1.05), Unit::kTrips}};
  return report;
}

TEST(PaperText, EveryRowHasItsVerdict) {
  // Given a report of which one row holds and one does not. When it is written without colours. Expect both
  // verdicts, in plain characters or with ticks.
  const Experiment experiment{"shard-test", "a test", nullptr};
  const std::string plain = PaperText(experiment, OneOfTwoHolds(), Paint(false), /*unicode=*/false);
  EXPECT_THAT(plain, HasSubstr("good        1.000       1.000   <= 1.05     holds\n"));
  EXPECT_THAT(plain, HasSubstr("bad             -       2.000   <= 1.05     DOES NOT HOLD\n"));
  EXPECT_THAT(plain, Not(HasSubstr("✓")));
  const std::string ticks = PaperText(experiment, OneOfTwoHolds(), Paint(false), /*unicode=*/true);
  EXPECT_THAT(ticks, HasSubstr("✓\n"));
  EXPECT_THAT(ticks, HasSubstr("✗ does not hold\n"));
}

TEST(PaperJson, SaysWhatThePaperDoesNotGive) {
  // Given the same report. When it is written as JSON. Expect null where the paper has nothing, and the
  // verdict over all.
  const Experiment experiment{"shard-test", "a test", nullptr};
  const std::string json = ToJson(PaperCommand{.name = "shard-test"}, experiment, OneOfTwoHolds());
  EXPECT_THAT(json, HasSubstr(R"("metric":"bad","paper":null,"ours":2.0,"rule":"<= 1.05","holds":false)"));
  EXPECT_THAT(json, HasSubstr(R"("holds":false,"set_up")"));
}

TEST(PaperExperiments, HaveNamesOfTheirOwn) {
  // Given all experiments. When one is looked for by its name. Expect that one, and null for what there is
  // not.
  std::set<std::string_view> names;
  for (const Experiment& experiment : Experiments()) {
    EXPECT_TRUE(names.insert(experiment.name).second) << experiment.name;
    EXPECT_EQ(FindExperiment(experiment.name), &experiment);
    EXPECT_NE(experiment.name, "list");
  }
  EXPECT_EQ(FindExperiment("nosuch"), nullptr);
}

TEST(PaperSettings, SizesAreScaledAndNeverTooSmall) {
  // Given a usual size and that of the claim. When they are scaled. Expect a share of the usual one, with a
  // floor; --full is not scaled.
  EXPECT_EQ((Settings{.percent = 100}).Scaled(1000, 9000, 10), 1000u);
  EXPECT_EQ((Settings{.percent = 50}).Scaled(1000, 9000, 10), 500u);
  EXPECT_EQ((Settings{.percent = 1}).Scaled(100, 9000, 10), 10u);
  EXPECT_EQ((Settings{.percent = 1, .full = true}).Scaled(1000, 9000, 10), 9000u);
}

TEST(PaperPlot, ColumnsAreAsHighAsTheirFigures) {
  // Given three columns of 0, half and all. When they are drawn with two rows. Expect one row for the half,
  // two for the whole, and marks below.
  Plot plot;
  plot.title = "title";
  plot.y_unit = "M/s";
  plot.columns = {0, 1, 2};
  plot.marks = {{0.0, '.'}, {1.0, '^'}};
  plot.x_begin = "0";
  plot.x_end = "9";
  EXPECT_EQ(PlotText(plot, /*unicode=*/false, 72, 2),
            "title\n"
            "      2.00 M/s |  #\n"
            "             0 | ##\n"
            "                . ^\n"
            "                0 9\n");
}

TEST(PaperPlot, BlocksShowPartsOfARow) {
  // Given columns of a quarter and a whole. When they are drawn in one row of blocks. Expect a low block and
  // a full one.
  Plot plot;
  plot.columns = {1, 4};
  EXPECT_THAT(PlotText(plot, /*unicode=*/true, 72, 1), HasSubstr("|▂█\n"));
}

TEST(PaperPlot, NeighboursShareAColumnIfThereAreTooMany) {
  // Given four columns and room for two. When they are drawn. Expect their means: 1 and 3 of 3.
  Plot plot;
  plot.columns = {0, 2, 3, 3};
  const std::string text = PlotText(plot, /*unicode=*/false, 2, 3);
  EXPECT_THAT(text, HasSubstr("3.00"));
  EXPECT_THAT(text, HasSubstr("0 |##\n"));
  EXPECT_THAT(text, HasSubstr("| #\n"));
  EXPECT_EQ(PlotText(Plot(), false), "");
}

TEST(PaperTimeline, TheSlowestStretchCountsWhereverItBegins) {
  // Given a run at 10 operations a window with a dip of three windows. When its evenness is measured over
  // stretches of two. Expect the steady rate, and the dip, which no fixed grid of stretches would show whole.
  std::vector<uint64_t> windows(40, 10);
  windows[7] = 4;
  windows[8] = 2;
  windows.back() = 1;  // the run ended here
  const Evenness evenness = MeasureEvenness(windows, kMilli, 2);
  EXPECT_DOUBLE_EQ(evenness.steady, 10'000);
  EXPECT_DOUBLE_EQ(evenness.slowest, 3'000);
  EXPECT_EQ(evenness.slowest_at, 7 * kMilli);
  EXPECT_DOUBLE_EQ(evenness.share(), 0.3);
}

TEST(PaperTimeline, ARunThatIsTooShortIsNotEven) {
  // Given fewer windows than a stretch has. When the evenness is measured. Expect a share of 0, which keeps
  // no promise.
  EXPECT_EQ(MeasureEvenness(std::vector<uint64_t>(10, 5), kMilli, 10).share(), 0);
  EXPECT_EQ(MeasureEvenness({}, kMilli, 10).share(), 0);
}

TEST(PaperTimeline, GrowthIsMarkedWhereItHappened) {
  // Given a run with a resize that is announced at a quarter and in force at a half. When it is plotted.
  // Expect marks there.
  BenchTally tally;
  tally.windows.assign(9, 1000);
  tally.growth = {{1, 2 * kMilli}, {2, 4 * kMilli}};
  const Plot plot = PlotOf(tally, kMilli, "inserts");
  EXPECT_EQ(plot.columns.size(), 8u);
  EXPECT_DOUBLE_EQ(plot.columns[0], 1.0);
  EXPECT_THAT(plot.marks, ElementsAre(testing::Pair(0.25, '.'), testing::Pair(0.5, '^')));
}

TEST(PaperTrips, ThePhasesAreTheSumsOfTheirOperations) {
  // Given a plan with an observer, and with puts. When trips are measured. Expect each operation of each
  // phase once, with what it has counted alone: they add up to the figures of the phase.
  constexpr uint64_t kRecords = 400;
  std::map<std::string, fabric::OpTally, std::less<>> sums;
  TripsPlan plan{.engine = "sephash", .records = kRecords, .puts = true};
  plan.observe = [&sums](std::string_view phase, const fabric::OpTally& tally) {
    EXPECT_LE(tally.operations, 1u);
    sums[std::string(phase)].Add(tally);
  };
  const Result<TripFigures> figures =
      MeasureTrips(plan, [](std::string_view, uint64_t, uint64_t, std::string_view) {});
  ASSERT_TRUE(figures.ok()) << figures.error().ToString();
  for (const auto& [phase, trips] :
       {std::pair{"inserts", &figures->insert}, std::pair{"searches", &figures->search},
        std::pair{"updates", &figures->update}, std::pair{"puts", &figures->put}}) {
    EXPECT_EQ(sums[phase].operations, kRecords) << phase;
    EXPECT_EQ(sums[phase].end_to_end_trips, trips->tally.end_to_end_trips) << phase;
    EXPECT_GT(sums[phase].end_to_end_trips, 0u) << phase;
  }
}

TEST(PaperNessie, TheClosestReadingAgreesWithTheTable) {
  // Given the loads of table 1 of the paper. When its algorithms are counted. Expect its figures, to 0.11;
  // with the fewest trips, less at every load; and 2 trips in an empty table either way.
  for (const auto& [load, trips] : {std::pair{0.1, 2.5}, std::pair{0.25, 3.5}, std::pair{0.5, 5.8},
                                    std::pair{0.75, 9.9}, std::pair{0.9, 13.3}}) {
    EXPECT_NEAR(PaperTripsOfPut(load, Reading::kClosest), trips, 0.11) << load;
    EXPECT_LT(PaperTripsOfPut(load, Reading::kFewest), trips) << load;
  }
  EXPECT_DOUBLE_EQ(PaperTripsOfPut(0, Reading::kFewest), 2);
  EXPECT_DOUBLE_EQ(PaperTripsOfPut(0, Reading::kClosest), 2);
}

TEST(PaperNessie, OurTripsWereSlotsIndependent) {
  // Given a load, and bounds of chains. When the trips of a put are expected. Expect 2 in an empty table, 7
  // where every key needs a migration, and the mean of keys that find a place in between.
  EXPECT_DOUBLE_EQ(IndependentTripsOfPut(0, 32), 2);
  EXPECT_DOUBLE_EQ(IndependentTripsOfPut(0.5, 0), (0.5 * 2 + 0.25 * 3) / 0.75);
  EXPECT_DOUBLE_EQ(IndependentTripsOfPut(0.5, 1), (0.5 * 2 + 0.25 * 3 + 0.1875 * 7) / 0.9375);
  EXPECT_LT(IndependentTripsOfPut(0.9, 1), IndependentTripsOfPut(0.9, 32));
}

TEST(PaperCuckooModel, KeepsEveryRecordInOneOfItsChoices) {
  // Given models with one, two and four slots to a choice. When keys are put until one finds no place. Expect
  // a load that counts them all, and more slots to a choice to hold more.
  double last = 0;
  for (const uint32_t per_choice : {1u, 2u, 4u}) {
    CuckooModel model(4096, per_choice, 1);
    uint64_t records = 0;
    while (model.Put(model.DrawKey(), 32).has_value()) ++records;
    EXPECT_DOUBLE_EQ(model.load(), static_cast<double>(records) / 4096);
    EXPECT_GT(model.load(), last);
    last = model.load();
    const double before = model.load();
    model.DeleteAny();
    EXPECT_LT(model.load(), before);
    EXPECT_GT(model.ShareOfFullAlternatives(), 0);
    EXPECT_LE(model.ShareOfFullAlternatives(), 1);
  }
  EXPECT_GT(last, 0.8);
}

TEST(PaperCuckooModel, AMigrationMovesARecordToItsOtherChoice) {
  // Given a table of four slots with a record in each of two. When a key comes whose choices are both full.
  // Expect no place without a migration, and one where a record can move.
  CuckooModel model(4, 1, 1);
  EXPECT_EQ(model.Put({0, 2}, 0), 0u);
  EXPECT_EQ(model.Put({1, 3}, 0), 0u);
  EXPECT_FALSE(model.Put({0, 1}, 0).has_value());
  EXPECT_EQ(model.Put({0, 1}, 1), 1u);
  EXPECT_TRUE(model.IsFull(2));
  EXPECT_FALSE(model.IsFull(3));
  EXPECT_EQ(model.Put({0, 2}, 4), 2u) << "from 0 to 1, from 1 to 3";
}

TEST(PaperContinuityModel, APairHasTheSlotsOfItsBucketsAndThoseThatTheyShare) {
  // Given one pair, without groups and with one. When hashes of one bucket come, and then of the other.
  // Expect 4 and 12 slots for the first, 4 for the second, and 12 more where there is a group; and loads that
  // count its slots, or not.
  for (const uint32_t every : {0u, 1u}) {
    const uint64_t in_group = every == 0 ? 0 : 12;
    for (const uint64_t bucket : {0u, 1u}) {
      ContinuityModel model(1, every, false);
      uint64_t fit = 0;
      while (model.Insert(2 * fit + bucket)) ++fit;
      EXPECT_EQ(fit, 16 + in_group);
      for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(model.Insert(2 * i + 1 - bucket));
      EXPECT_FALSE(model.Insert(100 + 1 - bucket));
      const FullTable full{.records = 20 + in_group, .pairs = 1, .groups = every};
      EXPECT_EQ(model.now(), full);
      EXPECT_DOUBLE_EQ(full.load(), 1);
      EXPECT_DOUBLE_EQ(full.load_of_pairs(), every == 0 ? 1 : 1.6);
    }
  }
}

TEST(PaperContinuityModel, GrowsWheneverAKeyHasNoPlace) {
  // Given ten pairs, of which one in ten may have a group. When random hashes come, through eight doublings.
  // Expect twice as many pairs each time, loads of more than a half, and no more groups than are allowed, or
  // two (a pair that moves takes its group along).
  Random random(1);
  ContinuityModel model(10, 10, true);
  while (model.growths().size() < 8) EXPECT_TRUE(model.Insert(random.Next()));
  uint64_t pairs = 10;
  for (const FullTable& full : model.growths()) {
    EXPECT_EQ(full.pairs, pairs);
    EXPECT_GT(full.load(), 0.5);
    EXPECT_LT(full.load(), 1);
    EXPECT_LE(full.groups, pairs / 10 + 2);
    pairs *= 2;
  }
}

TEST(BenchTally, WindowsAddUpAndGrowthIsThatOfTheFirstToKnow) {
  // Given two clients with windows of different lengths. When their tallies are added. Expect sums, and the
  // earliest time of each step.
  BenchTally one;
  one.windows = {1, 2};
  one.growth = {{1, 5 * kMilli}};
  BenchTally other;
  other.windows = {10, 20, 30};
  other.growth = {{1, 4 * kMilli}, {2, 9 * kMilli}};
  one.Add(other);
  EXPECT_THAT(one.windows, ElementsAre(11, 22, 30));
  EXPECT_THAT(one.growth, ElementsAre(testing::Pair(1, 4 * kMilli), testing::Pair(2, 9 * kMilli)));
}

}  // namespace
}  // namespace farside::tools::paper
