// What the comparison with other systems prints, writes and draws, from figures that are known.
#include <cctype>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/peers/chart.h"
#include "bench/peers/idle.h"
#include "bench/peers/others_load.h"
#include "bench/peers/report.h"
#include "bench/peers/results.h"

namespace farside::peers {
namespace {

using testing::HasSubstr;
using testing::Not;

Entry EntryOf(size_t system, std::string manner, std::vector<double> throughputs) {
  Entry entry{.system = system, .manner = std::move(manner)};
  for (const double ops : throughputs) {
    entry.rounds.push_back({.ops_per_second = ops, .p50_us = 1e6 / ops, .p99_us = 3e6 / ops});
  }
  return entry;
}

Results Example() {
  Results results;
  results.setting = {.processor = "A <fast> & \"new\" one",
                     .cores = 2,
                     .memory_bytes = uint64_t{24} << 30,
                     .kernel = "Linux 6.1"};
  results.setting.records = 1'000'000;
  results.setting.value_size = 64;
  results.setting.rounds = 3;
  results.setting.seconds = 0.5;
  results.systems = {
      {"redis, tcp", "redis 7.0.15"}, {"farside, embedded", ""}, {"redis, unix socket", "redis 7.0.15"}};
  results.base = 1;
  for (const Operation operation : {Operation::kGet, Operation::kSet}) {
    for (const size_t depth : {1, 32}) {
      Cell cell{.operation = operation, .clients = 4, .depth = depth};
      cell.entries.push_back(EntryOf(0, "GET", {50'000, 40'000, 90'000}));
      cell.entries.push_back(EntryOf(1, "", {2'000'000, 1'000'000, 3'000'000}));
      cell.entries.push_back(EntryOf(2, "MGET, spinning", {100'000, 100'000, 100'000}));
      results.cells.push_back(cell);
    }
  }
  return results;
}

// A reader of the XML that matters here: elements that are closed in order, attributes in quotes, no stray
// '<' or '&'.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  bool WellFormed() {
    while (at_ < text_.size()) {
      const bool good = text_[at_] == '<' ? Tag() : Character();
      if (!good) return false;
    }
    return open_.empty() && roots_ == 1;
  }

 private:
  bool Character() {
    const char c = text_[at_];
    if (c == '&') return Entity();
    if (open_.empty() && !std::isspace(static_cast<unsigned char>(c))) return false;
    if (static_cast<unsigned char>(c) < ' ' && c != '\n') return false;
    ++at_;
    return c != '>';
  }

  bool Entity() {
    for (const std::string_view entity : {"&lt;", "&gt;", "&amp;", "&quot;"}) {
      if (!text_.substr(at_).starts_with(entity)) continue;
      at_ += entity.size();
      return true;
    }
    return false;
  }

  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool Tag() {
    Take('<');
    if (Take('/')) {
      const std::string_view name = Word();
      if (open_.empty() || open_.back() != name) return false;
      open_.pop_back();
      return Take('>');
    }
    const std::string_view name = Word();
    if (name.empty()) return false;
    if (open_.empty()) ++roots_;
    while (Take(' ')) {
      if (Word().empty() || !Take('=') || !Take('"')) return false;
      while (at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '<' || (text_[at_] == '&' && !Entity())) return false;
        ++at_;
      }
      if (!Take('"')) return false;
    }
    if (Take('/')) return Take('>');
    open_.push_back(name);
    return Take('>');
  }

  std::string_view text_;
  size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::string_view> open_;
};

TEST(PeersResults, TheMedianIsTheOneInTheMiddle) {
  // Given no, an odd and an even number of values. Expect 0, the middle one, and the mean of the two in the
  // middle.
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({4, 1, 3, 100}), 3.5);
}

TEST(PeersResults, FiguresOfAnEntryAreMediansOfEachFigure) {
  // Given three rounds whose figures are in different orders. When the middle is asked for. Expect each
  // figure's own.
  Entry entry;
  entry.rounds = {{100, 5, 50}, {300, 1, 90}, {200, 3, 70}};
  EXPECT_EQ(entry.Middle().ops_per_second, 200);
  EXPECT_EQ(entry.Middle().p50_us, 3);
  EXPECT_EQ(entry.Middle().p99_us, 70);
  EXPECT_EQ(entry.Slowest(), 100);
  EXPECT_EQ(entry.Fastest(), 300);
}

TEST(PeersResults, RatiosAreAgainstTheBaseOfTheSameCell) {
  // Given a base of 2 M ops/s. When others are compared. Expect how many times as fast it was; nothing
  // without a base.
  Results results = Example();
  const Cell& cell = results.cells.front();
  EXPECT_DOUBLE_EQ(*BaseAgainst(results, cell, cell.entries[0]), 40);
  EXPECT_DOUBLE_EQ(*BaseAgainst(results, cell, cell.entries[1]), 1);
  results.base.reset();
  EXPECT_FALSE(BaseAgainst(results, cell, cell.entries[0]).has_value());
}

TEST(PeersReport, NumbersAreShort) {
  // Given numbers of all sizes. Expect three or four digits and a unit, also where rounding reaches the next
  // unit.
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(999), "999");
  EXPECT_EQ(ShortNumber(45'600), "45.6 k");
  EXPECT_EQ(ShortNumber(999'400), "999.4 k");
  EXPECT_EQ(ShortNumber(999'999), "1.00 M");
  EXPECT_EQ(ShortNumber(std::numeric_limits<double>::infinity()), "-");
}

TEST(PeersReport, TheTableHasARowForEachSystemAndDepth) {
  // Given results of three systems. When they are printed. Expect the setting, each version once, medians,
  // ratios and how each was asked; and no spaces at the ends of lines.
  const std::string text = ReportText(Example());
  EXPECT_THAT(text, HasSubstr("records   1,000,000, keys of 8 and values of 64 bytes"));
  EXPECT_EQ(text.find("redis 7.0.15"), text.rfind("redis 7.0.15"));
  EXPECT_THAT(text, HasSubstr("\nGET, 4 clients\n"));
  EXPECT_THAT(text, HasSubstr("\nSET, 4 clients\n"));
  EXPECT_THAT(
      text,
      HasSubstr("redis, tcp              1      50.0 k   50 %       20.0       60.0      40.00  GET\n"));
  EXPECT_THAT(text,
              HasSubstr("farside, embedded      32      2.00 M   50 %        0.5        1.5       1.00\n"));
  EXPECT_THAT(text, HasSubstr("20.00  MGET, spinning\n"));
  EXPECT_THAT(text, Not(HasSubstr(" \n")));
}

TEST(PeersReport, SaysIfOthersKeptTheMachineBusy) {
  // Given a machine that others used a little, or a lot. When the table is printed. Expect the share, and a
  // warning.
  Results results = Example();
  EXPECT_THAT(ReportText(results), Not(HasSubstr("others")));
  results.setting.taken_by_others = 0.02;
  EXPECT_THAT(ReportText(results), HasSubstr("others    took 2 % of the processors meanwhile\n"));
  results.setting.taken_by_others = 0.6;
  EXPECT_THAT(ReportText(results), HasSubstr("others    took 60 % of the processors meanwhile: too much"));
}

TEST(PeersReport, TheJsonHasEveryRound) {
  // Given results of two operations, two depths and three systems. When they are written. Expect one line
  // with twelve cells and all rounds of each, whatever bytes names have.
  Results results = Example();
  results.systems[0].name = "odd \xff name";
  const std::string text = ReportJson(results);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["base"], "farside, embedded");
  EXPECT_EQ(json["machine"]["cores"], 2);
  ASSERT_EQ(json["cells"].size(), 12u);
  EXPECT_EQ(json["cells"][0]["operation"], "GET");
  EXPECT_EQ(json["cells"][0]["ops_per_second"], 50'000);
  EXPECT_EQ(json["cells"][0]["base_against_this"], 40);
  EXPECT_EQ(json["cells"][0]["rounds"].size(), 3u);
  EXPECT_EQ(json["cells"][5]["manner"], "MGET, spinning");
}

TEST(PeersReport, IdleServersAreToldFromNoServers) {
  // Given a system with a server and one without. When idle costs are printed. Expect a figure, and that
  // there is none.
  const std::vector<IdleRow> rows = {{"redis, tcp", 100, true, 0.25}, {"farside, embedded", 0, false, 0}};
  EXPECT_THAT(IdleText(rows, 10), HasSubstr("0.25 % of a core"));
  EXPECT_THAT(IdleText(rows, 10), HasSubstr("no server"));
  const nlohmann::json json = nlohmann::json::parse(IdleJson(rows, 10));
  EXPECT_EQ(json["systems"][0]["percent_of_a_core"], 0.25);
  EXPECT_TRUE(json["systems"][1]["percent_of_a_core"].is_null());
}

TEST(PeersChart, IsWellFormedAndNamesWhatItShows) {
  // Given results. When they are drawn. Expect well-formed XML with a title, units, axes, and the name of
  // every system.
  const std::string svg = Chart(Example());
  EXPECT_TRUE(XmlReader(svg).WellFormed()) << svg;
  for (const char* text :
       {"<title>", "operations per second", "log scale", "GET, 4 clients", "SET, 4 clients", "depth", "1 M",
        "farside, embedded", "redis, tcp", "redis, unix socket"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

// The heights of the names in the panel that begins at this text.
std::vector<double> HeightsOfNames(const std::string& svg, const std::vector<std::string>& names,
                                   std::string_view panel) {
  std::vector<double> heights;
  const size_t begin = svg.find(panel);
  for (const std::string& name : names) {
    const size_t text = svg.rfind("<text ", svg.find(">" + name + "<", begin));
    heights.push_back(std::stod(svg.substr(svg.find("y=\"", text) + 3)));
  }
  return heights;
}

TEST(PeersChart, FarsideHasOneHueAndOthersAreGrey_EachNamedAtItsLine) {
  // Given results of systems that are equally fast. When they are drawn.
  Results results = Example();
  for (Cell& cell : results.cells) {
    for (Entry& entry : cell.entries) entry.rounds = {{.ops_per_second = 50'000}};
  }
  const std::string svg = Chart(results);
  // Expect two classes of lines, one line in each panel for each system, and names that do not overlap.
  const auto count = [&svg](std::string_view part) {
    size_t found = 0;
    for (size_t at = svg.find(part); at != svg.npos; at = svg.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("fill=\"none\""), 2 * results.systems.size());
  EXPECT_EQ(count("class=\"name-farside\""), 2u);
  EXPECT_EQ(count("redis, tcp"), 2u);
  for (const char* panel : {">GET, 4 clients<", ">SET, 4 clients<"}) {
    std::vector<double> heights =
        HeightsOfNames(svg, {"redis, tcp", "farside, embedded", "redis, unix socket"}, panel);
    std::ranges::sort(heights);
    EXPECT_GE(heights[1] - heights[0], 12);
    EXPECT_GE(heights[2] - heights[1], 12);
  }
}

TEST(PeersChart, StaysWellFormedWhateverItIsGiven) {
  // Given no results; names with markup, control characters and foreign bytes; figures that are 0 or no
  // numbers. When they are drawn. Expect well-formed XML without any of that.
  EXPECT_TRUE(XmlReader(Chart({})).WellFormed());
  Results results = Example();
  results.systems[0].name = "<a href=\"x\">&\x01\xff</a>";
  results.cells[0].entries[0].rounds = {{0, 0, 0}};
  results.cells[0].entries[1].rounds = {{std::numeric_limits<double>::quiet_NaN(), 0, 0}};
  results.cells[0].entries[2].rounds = {{std::numeric_limits<double>::infinity(), 0, 0}};
  results.cells[1].entries.clear();
  const std::string svg = Chart(results);
  EXPECT_TRUE(XmlReader(svg).WellFormed()) << svg;
  EXPECT_THAT(svg, HasSubstr("&lt;a href=&quot;x&quot;&gt;&amp;??&lt;/a&gt;"));
  for (const char* text : {"nan", "inf", "<a "}) EXPECT_THAT(svg, Not(HasSubstr(text)));
}

TEST(PeersChart, TheReaderOfTheseTestsRefusesBrokenXml) {
  // Given XML that is broken in one way each. Expect that the tests above would see it.
  for (const char* text : {"", "<a>", "<a></b>", "<a/><b/>", "<a>&</a>", "<a>></a>", "<a b=c/>",
                           "<a b=\"<\"/>", "x<a/>", "<a b=\"1\"c=\"2\"/>"}) {
    EXPECT_FALSE(XmlReader(text).WellFormed()) << text;
  }
  EXPECT_TRUE(XmlReader("<a b=\"1\"><c/>x &lt; y</a>\n").WellFormed());
}

TEST(PeersOthersLoad, ReadsTheFirstLineOfProcStat) {
  // Given what the kernel writes. When it is read. Expect all ticks, and those that were neither idle nor
  // waiting.
  const std::optional<ProcessorTicks> ticks =
      ParseProcessorTicks("cpu  10 20 30 400 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
  ASSERT_TRUE(ticks.has_value());
  EXPECT_EQ(ticks->all, 486u);
  EXPECT_EQ(ticks->busy, 81u);
  for (const char* text : {"", "cpu\n", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2 x 4 5 6 7 8\n"}) {
    EXPECT_FALSE(ParseProcessorTicks(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace farside::peers
