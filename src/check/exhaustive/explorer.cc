#include "check/exhaustive/explorer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "check/exhaustive/intern.h"
#include "check/exhaustive/state.h"
#include "check/exhaustive/trace.h"
#include "check/exhaustive/world.h"
#include "check/linearizability.h"

namespace farside::check {
namespace {

using exhaustive::Choice;
using exhaustive::HashSet;
using exhaustive::State;
using exhaustive::Trace;
using exhaustive::World;

// Memory that the search for a shorter way may use: it keeps all states that it visits.
constexpr size_t kShorteningBytes = size_t{64} << 20;

// The bytes of many states, which never move.
class StateStore {
 public:
  explicit StateStore(const exhaustive::StateLayout& layout) : layout_(layout) {}

  State operator[](size_t i) {
    while (i / kPerChunk >= chunks_.size()) {
      chunks_.push_back(std::make_unique<uint64_t[]>(kPerChunk * layout_.capacity() / sizeof(uint64_t)));
    }
    auto* const chunk = reinterpret_cast<std::byte*>(chunks_[i / kPerChunk].get());
    return {layout_, chunk + i % kPerChunk * layout_.capacity()};
  }

 private:
  static constexpr size_t kPerChunk = 64;

  const exhaustive::StateLayout& layout_;
  std::vector<std::unique_ptr<uint64_t[]>> chunks_;
};

class DepthFirst {
 public:
  DepthFirst(const Scenario& scenario, World& world)
      : scenario_(scenario), world_(world), states_(world.layout()) {}

  void Run() {
    world_.Begin(states_[0]);
    Enter(states_[0]);
    while (!frames_.empty() && !world_.problem() && !limited_) {
      Frame& frame = frames_.back();
      if (frame.next == frame.end) {
        choices_.resize(frame.begin);
        frames_.pop_back();
        continue;
      }
      const State from = states_[frames_.size() - 1];
      const State to = states_[frames_.size()];
      to.CopyFrom(from);
      ++steps_;
      world_.Take(to, choices_[frame.next++]);
      if (world_.cut()) {
        world_.ForgetCut();
        ++cut_;
      } else if (!world_.problem()) {
        Enter(to);
      }
    }
  }

  uint64_t states() const { return visited_.size(); }
  uint64_t steps() const { return steps_; }
  uint64_t depth() const { return depth_; }
  uint64_t cut() const { return cut_; }
  bool limited() const { return limited_; }

  // The choices that led to the problem.
  Schedule Path() const {
    Schedule schedule;
    for (const Frame& frame : frames_) {
      if (frame.next > frame.begin) schedule.push_back(static_cast<uint32_t>(frame.next - frame.begin - 1));
    }
    return schedule;
  }

 private:
  // A state on the path, and the steps that it can take.
  struct Frame {
    size_t begin;  // in choices_
    size_t next;
    size_t end;
  };

  void Enter(State state) {
    if (!visited_.Insert(state.Hash())) return;
    limited_ = visited_.size() >= scenario_.max_states;
    const size_t begin = choices_.size();
    world_.ListChoices(state, choices_);
    frames_.push_back({.begin = begin, .next = begin, .end = choices_.size()});
    depth_ = std::max<uint64_t>(depth_, frames_.size() - 1);
    world_.Inspect(state, choices_.size() - begin);
  }

  const Scenario& scenario_;
  World& world_;
  StateStore states_;
  std::vector<Frame> frames_;
  std::vector<Choice> choices_;  // of all frames
  HashSet visited_;
  uint64_t steps_ = 0;
  uint64_t depth_ = 0;
  uint64_t cut_ = 0;
  bool limited_ = false;
};

// Breadth first: the first problem of this kind that it meets is one with the shortest way to it.
std::optional<Schedule> ShortestWayTo(Conclusion conclusion, const Scenario& scenario, size_t longest) {
  struct Origin {
    size_t from;
    uint32_t choice;
    size_t depth;
  };
  World world(scenario);
  StateStore states(world.layout());
  std::vector<Origin> origins{{.from = 0, .choice = 0, .depth = 0}};
  HashSet visited;
  std::vector<Choice> choices;

  const auto way_to = [&](size_t state) {
    Schedule schedule;
    for (; state != 0; state = origins[state].from) schedule.push_back(origins[state].choice);
    std::ranges::reverse(schedule);
    return schedule;
  };

  world.Begin(states[0]);
  const size_t most = kShorteningBytes / world.layout().capacity();
  for (size_t at = 0; at < origins.size() && origins.size() < most; ++at) {
    if (origins[at].depth >= longest) break;
    choices.clear();
    world.ListChoices(states[at], choices);
    for (uint32_t i = 0; i < choices.size(); ++i) {
      const size_t next = origins.size();
      const State state = states[next];
      state.CopyFrom(states[at]);
      world.Take(state, choices[i]);
      if (world.cut()) {
        world.ForgetCut();
        continue;
      }
      if (!world.problem() && !visited.Insert(state.Hash())) continue;
      origins.push_back({.from = at, .choice = i, .depth = origins[at].depth + 1});
      if (!world.problem()) {
        std::vector<Choice> further;
        world.ListChoices(state, further);
        world.Inspect(state, further.size());
      }
      if (!world.problem()) continue;
      if (world.problem()->conclusion == conclusion) return way_to(next);
      world.ForgetProblem();
      origins.pop_back();
    }
  }
  return std::nullopt;
}

// The search judges histories with its own automaton. The checker must agree.
void CrossCheck(const Trace& trace, Exploration& result) {
  const Verdict verdict = CheckLinearizable(trace.history());
  const bool found = result.conclusion == Conclusion::kNotLinearizable;
  if (verdict.answer == check::Answer::kUndecided || found == !verdict.ok()) return;
  result.conclusion = Conclusion::kUnfit;
  result.what = fmt::format("the explorer and the linearizability checker disagree: the checker says {}",
                            ToString(verdict));
}

void FillIn(const World& world, Exploration& result) {
  result.histories = world.histories();
  result.runs = world.runs();
  if (world.problem()) {
    result.conclusion = world.problem()->conclusion;
    result.what = world.problem()->what;
  }
}

}  // namespace

std::string_view Name(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::kNothing: return "nothing wrong";
    case Conclusion::kCut: return "cut";
    case Conclusion::kLimit: return "limit reached";
    case Conclusion::kNotLinearizable: return "not linearizable";
    case Conclusion::kInvariantBroken: return "invariant broken";
    case Conclusion::kStuck: return "stuck";
    case Conclusion::kUnfit: return "unfit scenario";
  }
  return "?";
}

Exploration Explore(const Scenario& scenario) {
  Exploration result;
  World world(scenario);
  DepthFirst search(scenario, world);
  if (!world.problem()) search.Run();
  result.states = search.states();
  result.steps = search.steps();
  result.depth = search.depth();
  result.cut = search.cut();
  FillIn(world, result);
  if (!world.problem()) {
    if (search.limited()) {
      result.conclusion = Conclusion::kLimit;
      result.what = fmt::format("{} states were visited, more are not allowed", search.states());
    } else if (result.cut > 0) {
      result.conclusion = Conclusion::kCut;
      result.what =
          fmt::format("{} times a client needed more than {} trips", result.cut, scenario.max_trips);
    }
    return result;
  }

  if (result.conclusion == Conclusion::kUnfit || result.conclusion == Conclusion::kLimit)
    return result;  // not of one path
  Schedule way = search.Path();
  if (std::optional<Schedule> shorter = ShortestWayTo(result.conclusion, scenario, way.size()))
    way = *shorter;
  Exploration replayed = Replay(scenario, way);
  if (replayed.conclusion != result.conclusion) {
    result.what = fmt::format("what was found ({}) is not found again on the same path, where it is: {} ({})",
                              Name(result.conclusion), Name(replayed.conclusion), replayed.what);
    result.conclusion = Conclusion::kUnfit;
    return result;
  }
  result.what = std::move(replayed.what);
  result.schedule = std::move(replayed.schedule);
  result.trace = std::move(replayed.trace);
  result.chart = std::move(replayed.chart);
  return result;
}

Exploration Replay(const Scenario& scenario, const Schedule& schedule) {
  Exploration result;
  World world(scenario);
  Trace trace;
  world.set_trace(&trace);
  StateStore states(world.layout());
  const State state = states[0];
  std::vector<Choice> choices;

  if (!world.problem()) world.Begin(state);
  for (uint32_t choice : schedule) {
    if (world.problem() || world.cut()) break;
    choices.clear();
    world.ListChoices(state, choices);
    if (choice >= choices.size()) {
      result.conclusion = Conclusion::kUnfit;
      result.what = fmt::format("the schedule does not fit the scenario at step {}", result.steps);
      break;
    }
    world.Take(state, choices[choice]);
    result.schedule.push_back(choice);
    ++result.steps;
    choices.clear();
    if (!world.problem()) {
      world.ListChoices(state, choices);
      world.Inspect(state, choices.size());
    }
  }
  FillIn(world, result);
  result.depth = result.steps;
  result.trace = trace.lines();
  result.chart = Chart(trace.history().operations());
  CrossCheck(trace, result);
  return result;
}

std::string Exploration::ToString() const {
  std::string text =
      fmt::format("{}: {}\n{} states, {} steps, {} histories, {} runs of programs, longest path {}\n",
                  Name(conclusion), what, states, steps, histories, runs, depth);
  for (size_t i = 0; i < trace.size(); ++i) text += fmt::format("{:4}  {}\n", i + 1, trace[i]);
  if (!trace.empty()) text += chart;
  if (!schedule.empty()) text += fmt::format("schedule {{{}}}\n", fmt::join(schedule, ", "));
  return text;
}

}  // namespace farside::check
