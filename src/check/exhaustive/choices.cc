// Which steps a World can take.
#include <algorithm>
#include <bit>

#include "check/exhaustive/world.h"

namespace farside::check::exhaustive {

using fabric::VerbKind;

void World::ListChoices(State state, std::vector<Choice>& choices) {
  if (scenario_.prepare_in_turn && ListPreparation(state, choices)) return;
  if (reduce_) LookAround(state);
  const auto actors = static_cast<Flight>(layout_.actors());  // at most kMostActors
  for (Flight flight = 0; flight < actors; ++flight) {
    const ActorState& actor = state.actor(flight);
    if (actor.dead() || actor.ended() || !MayStart(state, flight)) continue;
    if (actor.marks_done < tree_[actor.node].second_part) {
      choices.push_back({.kind = Choice::Kind::kLocal, .flight = flight});
      continue;
    }
    ListSteps(state, flight, choices);
    if (actor.done == 0) ListFaults(state, flight, choices);
  }
  for (auto flight = static_cast<Flight>(layout_.actors()); flight < Flights(state); ++flight) {
    ListSteps(state, flight, choices);
  }
}

// True if somebody is still preparing: then there is one way to go on.
bool World::ListPreparation(State state, std::vector<Choice>& choices) const {
  for (Flight flight = 0; flight < layout_.actors(); ++flight) {
    const ActorState& actor = state.actor(flight);
    if (actor.dead() || actor.ended() || !MayStart(state, flight)) continue;
    if (!tree_[actor.node].preparing || !MayFly(state, flight)) continue;
    choices.push_back({.kind = Choice::Kind::kFinish, .flight = flight});
    return true;
  }
  return false;
}

bool World::MayStart(State state, size_t actor) const {
  const int phase = scenario_.participants[actor].phase;
  return phase == 0 || AllEnded(state, phase);
}

bool World::AllEnded(State state, int before_phase) const {
  for (size_t i = 0; i < layout_.actors(); ++i) {
    const ActorState& actor = state.actor(i);
    if (scenario_.participants[i].phase < before_phase && !actor.dead() && !actor.ended()) return false;
  }
  return true;
}

void World::ListSteps(State state, Flight flight, std::vector<Choice>& choices) {
  if (!MayFly(state, flight)) return;
  const Request& request = RequestOf(state, flight);
  const uint64_t left = request.all & ~DoneOf(state, flight);
  const bool reduce = reduce_ && !request.control;
  if (reduce) {
    choices.push_back({.kind = Choice::Kind::kFinish, .flight = flight});
    for (uint64_t window : request.windows) {
      if ((window & left) == 0 || (window & left) == left || (window & ~left) == 0) continue;
      const auto any = static_cast<uint8_t>(std::countr_zero(window & left));
      choices.push_back({.kind = Choice::Kind::kClose, .flight = flight, .piece = any});
    }
  }
  for (uint64_t rest = left; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<uint8_t>(std::countr_zero(rest));
    const Piece& piece = request.pieces[index];
    const uint64_t step = (piece.after & left) | Bit(index);
    const Choice choice{.kind = Choice::Kind::kStep, .flight = flight, .piece = index};
    if (reduce ? step != left && IsContested(state, flight, request, piece) : step == Bit(index)) {
      choices.push_back(choice);
    }
    const bool may_be_lost =
        scenario_.freedoms.lossy_writes && request.verbs[piece.verb].kind == VerbKind::kWrite;
    if (may_be_lost && (reduce || step == Bit(index))) ListSwallowing(state, choice, choices);
  }
}

void World::LookAround(State state) {
  for (Flight flight = 0; flight < Flights(state); ++flight) {
    Intentions& intentions = intentions_[flight];
    intentions = {};
    if (!MayFly(state, flight)) continue;
    const Request& request = RequestOf(state, flight);
    for (uint64_t left = request.all & ~DoneOf(state, flight); left != 0; left &= left - 1) {
      const Piece& piece = request.pieces[static_cast<size_t>(std::countr_zero(left))];
      intentions.words |= piece.words;
      intentions.changes |= WordsChanged(request, piece, state.region());
    }
  }
}

// Control verbs touch everything: a FENCE that is in flight might cut off this very trip.
bool World::IsContested(State state, Flight flight, const Request& request, const Piece& piece) const {
  if ((piece.rivals & ~DoneOf(state, flight)) != 0) return true;
  Intentions others;
  for (Flight other = 0; other < Flights(state); ++other) {
    if (other == flight) continue;
    others.words |= intentions_[other].words;
    others.changes |= intentions_[other].changes;
  }
  if ((piece.words & others.changes) != 0) return true;
  return (piece.words & others.words) != 0 &&
         (WordsChanged(request, piece, state.region()) & others.words) != 0;
}

void World::ListSwallowing(State state, Choice write, std::vector<Choice>& choices) {
  const Piece& stored = RequestOf(state, write.flight).pieces[write.piece];
  write.kind = Choice::Kind::kSwallow;
  for (Flight flight = 0; flight < Flights(state); ++flight) {
    if (!MayFly(state, flight)) continue;
    const Request& request = RequestOf(state, flight);
    const uint64_t done = DoneOf(state, flight);
    const auto pieces = static_cast<uint8_t>(request.pieces.size());  // at most kMostPieces
    for (uint8_t i = 0; i < pieces; ++i) {
      const Piece& piece = request.pieces[i];
      if (!IsAtomic(request.verbs[piece.verb].kind) || (done & Bit(i)) != 0) continue;
      if ((!reduce_ || request.control) && !request.MayStep(i, done)) continue;
      if (flight == write.flight && ((piece.after & Bit(write.piece)) != 0 || (stored.after & Bit(i)) != 0))
        continue;
      if (piece.offset + piece.bytes <= stored.offset || stored.offset + stored.bytes <= piece.offset)
        continue;
      write.atomic_flight = flight;
      write.atomic_piece = i;
      choices.push_back(write);
    }
  }
}

void World::ListFaults(State state, Flight flight, std::vector<Choice>& choices) {
  const Participant& participant = scenario_.participants[flight];
  if (participant.may_die) {
    const auto deaths = std::ranges::count_if(state.actors(), &ActorState::dead);
    if (static_cast<size_t>(deaths) < scenario_.max_deaths) {
      choices.push_back({.kind = Choice::Kind::kDie, .flight = flight});
    }
  }
  if (participant.may_lose_completion) {
    size_t lost = 0;
    for (const ActorState& actor : state.actors()) lost += static_cast<size_t>(std::popcount(actor.lost));
    if (lost < scenario_.max_lost_completions) {
      choices.push_back({.kind = Choice::Kind::kLose, .flight = flight});
    }
  }
}

}  // namespace farside::check::exhaustive
