#include "check/exhaustive/observation_tree.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "farside/task.h"

namespace farside::check::exhaustive {
namespace {

using fabric::Order;
using fabric::Trip;
using fabric::Verb;
using fabric::VerbKind;

// The first byte of an observation.
constexpr std::byte kAnswers{0};
constexpr std::byte kError{1};  // then the code in a byte, and the message

Error ErrorIn(std::span<const std::byte> observation) {
  return {static_cast<ErrorCode>(observation[1]), std::string(AsText(observation.subspan(2)))};
}

// Gives a trip the answers that were recorded.
void Deliver(std::span<const std::byte> observation, Trip& trip) {
  if (observation[0] == kError) {
    trip.Fail(ErrorIn(observation));
    return;
  }
  std::span<const std::byte> answers = observation.subspan(1);
  for (Verb& verb : trip.verbs) {
    if (verb.kind == VerbKind::kCall) {
      verb.reply->assign(AsText(answers));
      break;
    }
    const size_t bytes = AnswerBytes(verb);
    if (verb.kind == VerbKind::kRead && bytes > 0) std::memcpy(verb.into, answers.data(), bytes);
    if (IsAtomic(verb.kind)) verb.old = LoadU64(answers.data());
    answers = answers.subspan(bytes);
  }
  trip.Succeed();
}

}  // namespace

// Answers the trips of a program as recorded, and catches what it does after the last one.
class ReplayWire final : public Wire {
 public:
  // `path` leads from the root to the node, both included.
  ReplayWire(ObservationTree& tree, std::span<const uint32_t> path)
      : tree_(tree), path_(path), region_bytes_(tree.scenario_.region_bytes) {}

  bool Start(uint32_t connection, Trip& trip) override {
    if (std::optional<Error> error = fabric::CheckBounds(trip.verbs, {&region_bytes_, 1})) {
      trip.Fail(std::move(*error));
      return true;
    }
    const uint64_t fingerprint = Fingerprint(connection, trip.order, trip.verbs);
    if (Recording()) {
      if (posted_)
        tree_.Report(Conclusion::kUnfit, "a program awaits two trips at once, which is not supported");
      posted_ = true;
      Node& node = Leaf();
      node.fingerprint = fingerprint;
      node.request = tree_.AddRequest(node.actor, connection, trip.order, trip.verbs);
      return false;
    }
    if (tree_[path_[at_]].fingerprint != fingerprint) {
      NotRepeatable();
      trip.Fail(Error(ErrorCode::kCorrupt, "the trip differs from that of an earlier run"));
      return true;
    }
    Deliver(tree_.observations_[tree_[path_[++at_]].observation], trip);
    return true;
  }

  void Detach(uint32_t connection, Order order, std::span<const Verb> verbs) override {
    // After the last trip the program is destroyed, and what it does then is no part of the run.
    if (!Recording() || posted_ || fabric::CheckBounds(verbs, {&region_bytes_, 1})) return;
    const uint32_t request = tree_.AddRequest(Leaf().actor, connection, order, verbs);
    Leaf().marks.push_back({.is_request = true, .number = request});
  }

  void Note(const Event& event) override {
    if (event.kind == EventKind::kInvoke) {
      in_progress_.push_back(event.operation);
    } else {
      std::erase(in_progress_, event.operation);
    }
    if (!Recording()) return;
    Leaf().marks.push_back(
        {.is_invocation = event.kind == EventKind::kInvoke, .number = tree_.monitor_.NumberOf(event)});
  }

  void Forget(uint64_t key) override {
    if (Recording()) forgotten_.emplace(key, Leaf().marks.size());
  }

  bool posted() const { return posted_; }
  const std::optional<std::pair<uint64_t, size_t>>& forgotten() const { return forgotten_; }
  std::span<const uint32_t> in_progress() const { return in_progress_; }
  // Called when the program has stopped.
  void CheckThatAllWasAsked() {
    if (!Recording()) NotRepeatable();
  }

 private:
  void NotRepeatable() {
    tree_.Report(
        Conclusion::kUnfit,
        fmt::format("client {} does not repeat itself: with the same answers, its trip {} is not that "
                    "of an earlier run",
                    ClientNumber(Leaf().actor), at_));
  }

  bool Recording() const { return at_ + 1 == path_.size(); }
  Node& Leaf() { return tree_.nodes_[path_.back()]; }

  ObservationTree& tree_;
  std::span<const uint32_t> path_;
  const uint64_t region_bytes_;
  size_t at_ = 0;                                         // in the path: the answers up to here were given
  std::optional<std::pair<uint64_t, size_t>> forgotten_;  // key, and number of marks before it
  bool posted_ = false;
  std::vector<uint32_t> in_progress_;  // operations
};

ObservationTree::ObservationTree(const Scenario& scenario, Monitor& monitor)
    : scenario_(scenario), monitor_(monitor) {
  observations_.Intern({});  // number 0 stands for no observation
  const auto actors = static_cast<uint32_t>(scenario.participants.size());
  for (uint32_t actor = 0; actor < actors; ++actor) nodes_.emplace_back().actor = actor;
  for (uint32_t root = 0; root < actors; ++root) Expand(root);
}

uint32_t ObservationTree::Child(uint32_t node, uint32_t observation) {
  const uint64_t key = uint64_t{node} << 32 | observation;
  if (const uint32_t* known = children_.Find(key)) return *known;
  const auto child = static_cast<uint32_t>(nodes_.size());
  children_.Insert(key, child);
  Node& added = nodes_.emplace_back();
  added.parent = node;
  added.observation = observation;
  added.actor = nodes_[node].actor;
  added.depth = nodes_[node].depth + 1;
  Expand(child);
  return child;
}

void ObservationTree::Report(Conclusion conclusion, std::string what) {
  if (!problem_) problem_ = Problem{conclusion, std::move(what)};
}

void ObservationTree::Expand(uint32_t leaf) {
  std::vector<uint32_t> path(nodes_[leaf].depth + 1);
  uint32_t node = leaf;
  for (size_t i = path.size(); i-- > 0; node = nodes_[node].parent) path[i] = node;

  ++runs_;
  Node& expanded = nodes_[leaf];
  ReplayWire wire(*this, path);
  Actor actor(expanded.actor, scenario_, wire);
  Task<Done> task = scenario_.participants[expanded.actor].program(actor);
  task.Start();
  while (!task.done() && actor.Poll()) {
  }
  wire.CheckThatAllWasAsked();
  if (actor.connections() > kMostConnections) {
    Report(Conclusion::kLimit, fmt::format("client {} reconnects too often", ClientNumber(expanded.actor)));
  }
  if (wire.posted()) {
    expanded.ending = Ending::kTrip;
  } else if (!task.done()) {
    expanded.ending = Ending::kHanging;
  } else {
    const Result<Done> result = task.TakeResult();
    expanded.ending = result.ok() ? Ending::kDone : Ending::kGaveUp;
    if (!result.ok()) expanded.error = result.error();
  }
  for (uint32_t operation : wire.in_progress()) {
    expanded.deaths.push_back(
        monitor_.NumberOf(Event{.kind = EventKind::kLoseAnswer, .operation = operation}));
  }
  const bool invokes = std::ranges::any_of(expanded.marks, &Mark::is_invocation);
  const bool began_before = expanded.depth > 0 && !nodes_[expanded.parent].preparing;
  expanded.preparing = expanded.ending == Ending::kTrip && !invokes && !began_before;
  if (wire.forgotten()) Merge(leaf, wire.forgotten()->first, wire.forgotten()->second);
  PartMarks(expanded);
}

// Splits the node in two: what happened before the place was reached, and what the place leads to.
void ObservationTree::Merge(uint32_t number, uint64_t place, size_t marks_before) {
  Node& node = nodes_[number];
  const auto here = node.marks.begin() + static_cast<ptrdiff_t>(marks_before);
  if (marks_before > 0 && (here - 1)->is_invocation) return;  // it must wait for the next trip

  place = Hash64(std::as_bytes(std::span(node.deaths)), place);  // operations in progress
  const auto [known, is_new] = places_.try_emplace(place, static_cast<uint32_t>(nodes_.size()));
  if (is_new) {
    Node& rest = nodes_.emplace_back(node);
    rest.marks.assign(here, node.marks.end());
    PartMarks(rest);
  }
  const Node& rest = nodes_[known->second];
  if (rest.fingerprint != node.fingerprint || rest.ending != node.ending ||
      !std::equal(here, node.marks.end(), rest.marks.begin(), rest.marks.end())) {
    Report(Conclusion::kUnfit,
           fmt::format("client {} has not forgotten what it promised to forget", ClientNumber(node.actor)));
  }
  node.marks.erase(here, node.marks.end());
  node.continues_at = known->second;
}

void ObservationTree::PartMarks(Node& node) const {
  while (node.first_part < node.marks.size() && !node.marks[node.first_part].is_invocation) ++node.first_part;
  node.second_part = static_cast<uint32_t>(node.marks.size());
  while (node.second_part > node.first_part && node.marks[node.second_part - 1].is_invocation)
    --node.second_part;
}

uint32_t ObservationTree::AddRequest(uint32_t actor, uint32_t connection, Order order,
                                     std::span<const Verb> verbs) {
  const uint64_t key = Fingerprint(connection, order, verbs) + actor;
  const auto [known, is_new] = request_numbers_.try_emplace(key, static_cast<uint32_t>(requests_.size()));
  if (!is_new) return known->second;
  Request& request = requests_.emplace_back(MakeRequest(order, verbs, scenario_.freedoms));
  request.actor = actor;
  request.connection = connection;
  if (request.TooLarge()) {
    Report(Conclusion::kLimit, fmt::format("a trip of client {} falls into more than {} pieces",
                                           ClientNumber(actor), kMostPieces));
  }
  return known->second;
}

uint32_t ObservationTree::Blank(const Request& request) {
  scratch_.assign(1 + request.answer_bytes, std::byte{0});
  return observations_.Intern(scratch_);
}

void ObservationTree::Draft(uint32_t observation) {
  const std::span<const std::byte> before = observations_[observation];
  draft_.assign(before.begin(), before.end());
  drafting_ = true;
}

void ObservationTree::AddToDraft(size_t answer_at, std::span<const std::byte> answer) {
  std::ranges::copy(answer, draft_.begin() + 1 + static_cast<ptrdiff_t>(answer_at));
}

uint32_t ObservationTree::FinishDraft() {
  drafting_ = false;
  return observations_.Intern(draft_);
}

uint32_t ObservationTree::Reply(std::string_view reply) {
  const std::span<const std::byte> bytes = AsBytes(reply);
  scratch_.assign(1, kAnswers);
  scratch_.insert(scratch_.end(), bytes.begin(), bytes.end());
  return observations_.Intern(scratch_);
}

uint32_t ObservationTree::Failure(const Error& error) {
  const std::span<const std::byte> message = AsBytes(error.message());
  scratch_ = {kError, static_cast<std::byte>(error.code())};
  scratch_.insert(scratch_.end(), message.begin(), message.end());
  return observations_.Intern(scratch_);
}

}  // namespace farside::check::exhaustive
