// A line of "what a paper reports against what we measure".
//
// What is claimed is data: a metric, what the paper says, and a rule that our figure must keep. Measuring is
// code, shared by all engines; Compare brings the two together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farside::tools::paper {

enum class Unit : uint8_t { kTrips, kShare, kBytes, kOpsPerSecond, kTimes, kMicros, kNumber };
// "trips", "share", "bytes", "ops/s", "times", "us", "": for programs; shares are from 0 to 1.
std::string_view Name(Unit unit);
// For people: 1.009, "97.7 %", "328 B", "1,234,567/s", "4.30 x", "4.30 us".
std::string Format(Unit unit, double figure);

class Rule {
 public:
  static constexpr Rule AtMost(double limit) { return Rule(Kind::kAtMost, limit); }
  static constexpr Rule AtLeast(double limit) { return Rule(Kind::kAtLeast, limit); }
  static constexpr Rule Above(double limit) { return Rule(Kind::kAbove, limit); }
  static constexpr Rule Below(double limit) { return Rule(Kind::kBelow, limit); }
  // Nothing is promised.
  static constexpr Rule Reported() { return Rule(Kind::kReported, 0); }

  // A figure that is not a number keeps no rule.
  bool Holds(double figure) const;
  bool promises() const { return kind_ != Kind::kReported; }
  // "<= 1.05", or "reported".
  std::string Text(Unit unit) const;

 private:
  enum class Kind : uint8_t { kAtMost, kAtLeast, kAbove, kBelow, kReported };
  constexpr Rule(Kind kind, double limit) : kind_(kind), limit_(limit) {}

  Kind kind_;
  double limit_;
};

struct Row {
  std::string metric;
  std::optional<double> paper;  // absent where the paper's text gives no figure
  double ours = 0;
  Rule rule = Rule::Reported();
  Unit unit = Unit::kNumber;

  bool holds() const { return rule.Holds(ours); }
};

// What is claimed about a measurement of type Figures, and where our figure stands in it.
template <class Figures>
struct Claim {
  std::string_view metric;
  std::optional<double> paper;
  Rule rule;
  Unit unit;
  double (*ours)(const Figures&);
};

template <class Figures>
std::vector<Row> Compare(std::span<const Claim<Figures>> claims, const Figures& figures) {
  std::vector<Row> rows;
  for (const Claim<Figures>& claim : claims)
    rows.push_back({std::string(claim.metric), claim.paper, claim.ours(figures), claim.rule, claim.unit});
  return rows;
}

bool AllHold(std::span<const Row> rows);

}  // namespace farside::tools::paper
