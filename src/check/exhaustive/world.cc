#include "check/exhaustive/world.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside::check::exhaustive {
namespace {

using fabric::ClientId;
using fabric::Verb;
using fabric::VerbKind;

constexpr Windows WindowsOf(size_t actor) { return Windows{0xff} << (actor * kMostWindows); }
static_assert(kMostWindows == 8 && kMostActors * kMostWindows == 64);

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario),
      layout_(scenario.participants.size(), scenario.region_bytes),
      reduce_(scenario.reduce && !scenario.invariant && !scenario.final_check),
      tree_(scenario, monitor_),
      first_region_(scenario.region_bytes),
      answer_(scenario.region_bytes + 8) {
  if (scenario.participants.empty() || scenario.participants.size() > kMostActors) {
    Report(Conclusion::kUnfit, fmt::format("a scenario has 1 to {} participants", kMostActors));
  }
  if (tree_.problem()) Report(tree_.problem()->conclusion, tree_.problem()->what);
  if (scenario.set_up) SetUp();
}

void World::Begin(State state) {
  state.header() = {.begun = 1};
  std::ranges::copy(first_region_, state.region().begin());
  for (uint32_t event : first_events_) ApplyEvent(state, event);
  for (size_t actor = 0; actor < layout_.actors(); ++actor) {
    state.actor(actor) = {.node = static_cast<uint32_t>(actor)};
    RunLocalSteps(state, actor);
  }
}

// ---- flights -------------------------------------------------------------------------------------------

TripIndex World::Trips(State state) const {
  return static_cast<TripIndex>(layout_.actors() + state.header().orphans);
}

const Request& World::RequestOf(State state, TripIndex trip) const {
  if (IsOrphan(trip)) return tree_.request(state.orphans()[trip - layout_.actors()].request);
  return tree_.request(tree_[state.actor(trip).node].request);
}

uint64_t World::DoneOf(State state, TripIndex trip) const {
  return IsOrphan(trip) ? state.orphans()[trip - layout_.actors()].done : state.actor(trip).done;
}

bool World::MayProceed(State state, TripIndex trip) const {
  if (IsOrphan(trip)) return state.orphans()[trip - layout_.actors()].barred_from == 0;
  const ActorState& actor = state.actor(trip);
  return !actor.dead() && !actor.ended() && actor.barred_from == 0 &&
         actor.marks_done >= tree_[actor.node].second_part && MayStart(state, trip);
}

// ---- steps ---------------------------------------------------------------------------------------------

void World::Take(State state, Choice choice) {
  switch (choice.kind) {
    case Choice::Kind::kStep: {
      const uint64_t before = RequestOf(state, choice.trip).pieces[choice.piece].after;
      StepAll(state, choice.trip, before | Bit(choice.piece));
      break;
    }
    case Choice::Kind::kClose: {
      const std::vector<uint64_t>& windows = RequestOf(state, choice.trip).windows;
      StepAll(state, choice.trip, *std::ranges::find_if(windows, [&](uint64_t window) {
                return (window & Bit(choice.piece)) != 0;
              }));
      break;
    }
    case Choice::Kind::kFinish: StepAll(state, choice.trip, RequestOf(state, choice.trip).all); break;
    case Choice::Kind::kSwallow: Swallow(state, choice); break;
    case Choice::Kind::kLocal: DoLocally(state, choice.trip); break;
    case Choice::Kind::kDie: Die(state, choice.trip); break;
    case Choice::Kind::kLose: LoseCompletion(state, choice.trip); break;
  }
  if (tree_.problem()) Report(tree_.problem()->conclusion, tree_.problem()->what);
}

// Those of the pieces that have not taken effect yet, in order.
void World::StepAll(State state, TripIndex trip, uint64_t pieces) {
  uint64_t left = pieces & ~DoneOf(state, trip);
  if (left == 0) return;
  if (!IsOrphan(trip)) BeginTrip(state, trip);
  const Request& request = RequestOf(state, trip);
  const Verb& last = request.verbs[request.pieces[static_cast<size_t>(std::bit_width(left) - 1)].verb];
  uint64_t traced = 0;
  for (; left != 0; left &= left - 1) {
    const auto piece = static_cast<uint8_t>(std::countr_zero(left));
    if (trace_ != nullptr && (traced & Bit(piece)) == 0) traced |= TraceRun(state, trip, piece, left);
    Step(state, trip, request, piece);
  }
  if (last.kind == VerbKind::kCall) {
    RunCall(state, trip);
    return;
  }
  KeepAnswers(state, trip);
  Land(state, trip);
  if (last.kind == VerbKind::kFence) Fence(state, ClientId{static_cast<uint32_t>(last.desired)});
}

void World::Step(State state, TripIndex trip, const Request& request, uint8_t index) {
  const Piece& piece = request.pieces[index];
  const Verb& verb = request.verbs[piece.verb];
  MarkDone(state, trip, index);
  if (IsControl(verb.kind)) return;  // one step by itself, see ListSteps
  const std::span<std::byte> answer = std::span(answer_).first(IsAnswered(verb.kind) ? piece.bytes : 0);
  if (verb.kind != VerbKind::kRead) state.Touch(piece.offset, piece.bytes);
  TakeEffect(request, piece, state.region(), answer);
  Answer(state, trip, piece, answer);
}

// The atomic fetched its word before the WRITE and stores back after it.
void World::Swallow(State state, const Choice& choice) {
  if (!IsOrphan(choice.trip)) BeginTrip(state, choice.trip);
  if (!IsOrphan(choice.atomic_trip)) BeginTrip(state, choice.atomic_trip);
  StepAll(state, choice.trip, RequestOf(state, choice.trip).pieces[choice.piece].after);
  StepAll(state, choice.atomic_trip, RequestOf(state, choice.atomic_trip).pieces[choice.atomic_piece].after);
  if (trace_ != nullptr) {
    TracePart(state, choice.trip, RequestOf(state, choice.trip).pieces[choice.piece],
              ", but is lost where the next atomic stores back its word");
    TracePart(state, choice.atomic_trip, RequestOf(state, choice.atomic_trip).pieces[choice.atomic_piece],
              "");
  }
  MarkDone(state, choice.trip, choice.piece);
  MarkDone(state, choice.atomic_trip, choice.atomic_piece);

  const Request& writer = RequestOf(state, choice.trip);
  const Request& swallower = RequestOf(state, choice.atomic_trip);
  const Piece& atomic = swallower.pieces[choice.atomic_piece];
  const Verb& verb = swallower.verbs[atomic.verb];
  std::byte* const word = state.region().data() + atomic.offset;
  const uint64_t old = LoadU64(word);
  state.Touch(writer.pieces[choice.piece].offset, writer.pieces[choice.piece].bytes);
  state.Touch(atomic.offset, atomic.bytes);
  TakeEffect(writer, writer.pieces[choice.piece], state.region(), {});
  StoreU64(word, Succeeds(verb, old) ? NewWord(verb, old) : old);
  StoreU64(answer_.data(), old);
  Answer(state, choice.atomic_trip, atomic, std::span(answer_).first(8));
  KeepAnswers(state, choice.atomic_trip);

  // An orphan that has landed is gone, and those behind it move up: the last one first.
  Land(state, std::max(choice.trip, choice.atomic_trip));
  if (choice.trip != choice.atomic_trip) Land(state, std::min(choice.trip, choice.atomic_trip));
}

void World::DoLocally(State state, size_t index) {
  ActorState& actor = state.actor(index);
  const Node& node = tree_[actor.node];
  bool began = true;
  while (actor.marks_done < node.second_part) {
    const Mark& mark = node.marks[actor.marks_done];
    if (mark.is_invocation && !began) break;
    began = mark.is_invocation;
    ++actor.marks_done;
    Apply(state, mark);
  }
  RunLocalSteps(state, index);
}

void World::Die(State state, size_t index) {
  BeginTrip(state, index);
  ActorState& actor = state.actor(index);
  const Node& node = tree_[actor.node];
  if (trace_ != nullptr) trace_->Add(static_cast<uint32_t>(index), false, "dies");
  for (uint32_t event : node.deaths) ApplyEvent(state, event);
  AddOrphan(state, node.request, actor.barred_from);
  CloseWindows(state, WindowsOf(index));
  actor = {.fate = ActorState::kDead, .lost = actor.lost};  // what it knew does not matter any more
}

void World::LoseCompletion(State state, size_t index) {
  BeginTrip(state, index);
  ActorState& actor = state.actor(index);
  const uint32_t number = tree_[actor.node].request;
  const Request& request = tree_.request(number);
  if (trace_ != nullptr)
    trace_->Add(static_cast<uint32_t>(index), false, "loses the completion of its next trip");
  actor.lost = static_cast<uint8_t>(actor.lost | Bit(request.connection));
  AddOrphan(state, number, actor.barred_from);
  Observe(state, index, tree_.Failure(fabric::LostCompletion(request.verbs, "the connection broke")));
  RunLocalSteps(state, index);
}

void World::BeginTrip(State state, size_t index) {
  ActorState& actor = state.actor(index);
  const Node& node = tree_[actor.node];
  while (actor.marks_done < node.marks.size()) Apply(state, node.marks[actor.marks_done++]);
}

// Also keeps account of windows: a step inside a window of another client bars the client's later trips from
// it, because that window is shorter than a round trip.
void World::MarkDone(State state, TripIndex trip, uint8_t piece) {
  if (IsOrphan(trip)) {
    state.orphans()[trip - layout_.actors()].done |= Bit(piece);
    return;
  }
  ActorState& actor = state.actor(trip);
  if (!scenario_.freedoms.tear_reads) {
    actor.done |= Bit(piece);
    return;
  }
  actor.stepped_in |= OpenWindows(state, trip);
  actor.done |= Bit(piece);
  const Request& request = RequestOf(state, trip);
  for (size_t i = 0; i < request.windows.size(); ++i) {
    const bool closes = (request.windows[i] & ~actor.done) == 0 && (request.windows[i] & Bit(piece)) != 0;
    if (closes) CloseWindows(state, Windows{1} << (trip * kMostWindows + i));
  }
}

void World::Answer(State state, TripIndex trip, const Piece& piece, std::span<const std::byte> answer) {
  if (IsOrphan(trip) || answer.empty()) return;
  const ActorState& actor = state.actor(trip);
  if (!tree_.drafting())
    tree_.Draft(actor.answers != 0 ? actor.answers : tree_.Blank(RequestOf(state, trip)));
  tree_.AddToDraft(piece.answer_at, answer);
}

void World::KeepAnswers(State state, TripIndex trip) {
  if (tree_.drafting()) state.actor(trip).answers = tree_.FinishDraft();
}

// Ends the trip if all of it has taken effect.
void World::Land(State state, TripIndex trip) {
  const Request& request = RequestOf(state, trip);
  if (DoneOf(state, trip) != request.all) return;
  if (IsOrphan(trip)) {
    state.RemoveOrphan(trip - layout_.actors());
    return;
  }
  ActorState& actor = state.actor(trip);
  actor.barred_from |= actor.stepped_in;
  Observe(state, trip, actor.answers != 0 ? actor.answers : tree_.Blank(request));
  RunLocalSteps(state, trip);
}

void World::RunCall(State state, TripIndex trip) {
  const Request& request = RequestOf(state, trip);
  const Verb& verb = request.verbs[0];
  state.Touch(0, layout_.region_bytes());
  const Result<std::string> reply =
      RunHandler(verb, IdOf(request.actor, request.connection), scenario_.calls, state.region());
  if (IsOrphan(trip)) {
    Land(state, trip);
    return;
  }
  Observe(state, trip, reply.ok() ? tree_.Reply(*reply) : tree_.Failure(reply.error()));
  RunLocalSteps(state, trip);
}

// The victim's verbs in flight vanish. It learns of it with its trip: that failed if something of it has
// taken effect; otherwise it is refused like all later ones.
void World::Fence(State state, ClientId victim) {
  for (size_t i = state.header().orphans; i-- > 0;) {
    const Request& request = tree_.request(state.orphans()[i].request);
    if (IdOf(request.actor, request.connection) == victim) state.RemoveOrphan(i);
  }
  for (uint32_t index = 0; index < layout_.actors(); ++index) {
    ActorState& actor = state.actor(index);
    for (uint32_t connection = 0; connection < kMostConnections; ++connection) {
      if (IdOf(index, connection) != victim) continue;
      if (actor.dead() || actor.ended()) return;
      actor.fenced = static_cast<uint8_t>(actor.fenced | Bit(connection));
      const Request& request = tree_.request(tree_[actor.node].request);
      if (actor.done != 0 && request.connection == connection) {
        Observe(state, index, tree_.Failure(fabric::LostCompletion(request.verbs, "the client was fenced")));
      }
      RunLocalSteps(state, index);
      return;
    }
  }
}

// The trip of the client is over.
void World::Observe(State state, size_t index, uint32_t observation) {
  ActorState& actor = state.actor(index);
  if (scenario_.freedoms.tear_reads) CloseWindows(state, WindowsOf(index));
  if (tree_[actor.node].depth >= scenario_.max_trips) {
    cut_ = true;
    return;
  }
  actor.node = tree_.Child(actor.node, observation);
  actor.answers = 0;
  actor.done = 0;
  actor.stepped_in = 0;
  actor.marks_done = 0;
}

// Does what the client does without delay: operations end, programs end, broken connections refuse trips.
void World::RunLocalSteps(State state, size_t index) {
  ActorState& actor = state.actor(index);
  while (!problem_ && !tree_.problem() && !cut_) {
    const Node& node = tree_[actor.node];
    while (actor.marks_done < node.first_part) Apply(state, node.marks[actor.marks_done++]);
    if (actor.marks_done < node.second_part) return;
    if (node.continues_at) {
      actor.node = *node.continues_at;
      actor.marks_done = 0;
      continue;
    }
    if (node.ending != Ending::kTrip) {
      BeginTrip(state, index);
      Retire(actor, node);
      return;
    }
    const uint32_t connection = tree_.request(node.request).connection;
    const bool lost = (actor.lost & Bit(connection)) != 0;
    const bool fenced = (actor.fenced & Bit(connection)) != 0;
    if (!lost && !fenced) return;
    BeginTrip(state, index);
    Observe(
        state, index,
        tree_.Failure(lost ? Error(ErrorCode::kUnavailable, "the connection is broken; reconnect and retry")
                           : Error(ErrorCode::kFenced, "this client was fenced; register anew")));
  }
}

void World::Retire(ActorState& actor, const Node& node) {
  const uint32_t client = ClientNumber(node.actor);
  if (node.ending == Ending::kHanging) {
    Report(Conclusion::kStuck, fmt::format("client {} waits for something that is not in flight", client));
  } else if (node.ending == Ending::kGaveUp && actor.lost == 0 && actor.fenced == 0) {
    Report(Conclusion::kStuck, fmt::format("client {} gave up: {}", client, node.error->ToString()));
  }
  actor = {.fate = ActorState::kEnded, .lost = actor.lost};  // what it knew does not matter any more
}

void World::Apply(State state, const Mark& mark) {
  if (mark.is_request) {
    const Request& request = tree_.request(mark.number);
    const ActorState& actor = state.actor(request.actor);
    if (((actor.lost | actor.fenced) & Bit(request.connection)) == 0)
      AddOrphan(state, mark.number, actor.barred_from);
  } else {
    ApplyEvent(state, mark.number);
  }
}

void World::ApplyEvent(State state, uint32_t event) {
  if (problem_) return;
  if (trace_ != nullptr) trace_->Add(monitor_.event(event));
  const Monitor::History next = monitor_.Next(state.header().history, event);
  if (next == Monitor::kNotLinearizable) {
    Report(Conclusion::kNotLinearizable, "no order of the operations explains their answers");
  } else if (next == Monitor::kTooManyExplanations) {
    Report(Conclusion::kLimit, "too many operations are in progress at once");
  } else {
    state.header().history = next;
  }
}

// No client waits for the answers: READs do not matter.
void World::AddOrphan(State state, uint32_t number, Windows barred_from) {
  const Request& request = tree_.request(number);
  if (request.reads == request.all) return;
  if (state.header().orphans == kMostOrphans) {
    Report(Conclusion::kLimit, "too many trips are in flight that no client waits for");
    return;
  }
  const std::span<const Orphan> orphans = state.orphans();
  const auto later = std::ranges::find_if(
      orphans, [&](const Orphan& orphan) { return tree_.request(orphan.request).actor > request.actor; });
  state.InsertOrphan(static_cast<size_t>(later - orphans.begin()),
                     {.request = number, .done = request.reads, .barred_from = barred_from});
}

Windows World::OpenWindows(State state, size_t of_others_than) const {
  Windows open = 0;
  for (uint32_t index = 0; index < layout_.actors(); ++index) {
    const ActorState& actor = state.actor(index);
    if (index == of_others_than || actor.done == 0) continue;
    const Request& request = tree_.request(tree_[actor.node].request);
    for (size_t i = 0; i < request.windows.size(); ++i) {
      const uint64_t sampled = request.windows[i] & actor.done;
      if (sampled != 0 && sampled != request.windows[i]) open |= Windows{1} << (index * kMostWindows + i);
    }
  }
  return open;
}

void World::CloseWindows(State state, Windows windows) const {
  for (ActorState& actor : state.actors()) {
    actor.stepped_in &= ~windows;
    actor.barred_from &= ~windows;
  }
  for (Orphan& orphan : state.orphans()) orphan.barred_from &= ~windows;
}

// ---- what is wrong -------------------------------------------------------------------------------------

void World::Inspect(State state, size_t choices) {
  if (problem_) return;
  if (scenario_.invariant) {
    if (std::optional<std::string> complaint = scenario_.invariant(state.region())) {
      Report(Conclusion::kInvariantBroken, std::move(*complaint));
    }
  }
  if (AllEnded(state, std::numeric_limits<int>::max())) {
    if (!scenario_.final_check) return;
    if (std::optional<std::string> complaint = scenario_.final_check(state.region())) {
      Report(Conclusion::kInvariantBroken, fmt::format("in the end, {}", *complaint));
    }
  } else if (choices == 0) {
    Report(Conclusion::kStuck, "clients have not ended, and nothing can happen any more");
  }
}

void World::Report(Conclusion conclusion, std::string what) {
  if (!problem_) problem_ = Problem{conclusion, std::move(what)};
}

// One line for all lines of a verb that take effect one after the other. Returns the pieces it is about.
uint64_t World::TraceRun(State state, TripIndex trip, uint8_t first, uint64_t pieces) {
  const Request& request = RequestOf(state, trip);
  Piece part = request.pieces[first];
  uint64_t traced = Bit(first);
  for (uint32_t i = first + 1u; i < request.pieces.size(); ++i) {
    if ((pieces & Bit(i)) == 0 || request.pieces[i].verb != part.verb) break;
    part.bytes += request.pieces[i].bytes;
    traced |= Bit(i);
  }
  TracePart(state, trip, part, "");
  return traced;
}

void World::TracePart(State state, TripIndex trip, const Piece& part, std::string_view remark) {
  const Request& request = RequestOf(state, trip);
  const fabric::FarAddr at(request.verbs[part.verb].at.node, part.offset);
  const std::string name = scenario_.describe ? scenario_.describe(at) : "";
  trace_->Add(request, part, IsOrphan(trip), state.region(), name, remark);
}

}  // namespace farside::check::exhaustive
