// Which steps a World can take.
#include <algorithm>
#include <bit>

#include "base/bytes.h"
#include "check/exhaustive/world.h"

namespace farside::check::exhaustive {

using fabric::VerbKind;

void World::ListChoices(State state, std::vector<Choice>& choices) {
  if (scenario_.prepare_in_turn && ListPreparation(state, choices)) return;
  const auto actors = static_cast<TripIndex>(layout_.actors());  // at most kMostActors
  for (TripIndex trip = 0; trip < actors; ++trip) {
    const ActorState& actor = state.actor(trip);
    if (actor.dead() || actor.ended() || !MayStart(state, trip)) continue;
    if (actor.marks_done < tree_[actor.node].second_part) {
      choices.push_back({.kind = Choice::Kind::kLocal, .trip = trip});
      continue;
    }
    ListSteps(state, trip, choices);
    if (actor.done == 0) ListFaults(state, trip, choices);
  }
  for (auto trip = static_cast<TripIndex>(layout_.actors()); trip < Trips(state); ++trip) {
    ListSteps(state, trip, choices);
  }
}

// True if a client is still preparing: then there is one way to go on.
bool World::ListPreparation(State state, std::vector<Choice>& choices) const {
  for (TripIndex trip = 0; trip < layout_.actors(); ++trip) {
    const ActorState& actor = state.actor(trip);
    if (actor.dead() || actor.ended() || !MayStart(state, trip)) continue;
    if (!tree_[actor.node].preparing || !MayProceed(state, trip)) continue;
    choices.push_back({.kind = Choice::Kind::kFinish, .trip = trip});
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

void World::ListSteps(State state, TripIndex trip, std::vector<Choice>& choices) {
  if (!MayProceed(state, trip)) return;
  const Request& request = RequestOf(state, trip);
  const uint64_t left = request.all & ~DoneOf(state, trip);
  const bool reduce = reduce_ && !request.control;
  if (reduce) {
    choices.push_back({.kind = Choice::Kind::kFinish, .trip = trip});
    for (uint64_t window : request.windows) {
      if ((window & left) == 0 || (window & left) == left || (window & ~left) == 0) continue;
      const auto any = static_cast<uint8_t>(std::countr_zero(window & left));
      choices.push_back({.kind = Choice::Kind::kClose, .trip = trip, .piece = any});
    }
  }
  for (uint64_t rest = left; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<uint8_t>(std::countr_zero(rest));
    const Piece& piece = request.pieces[index];
    const uint64_t step = (piece.after & left) | Bit(index);
    const Choice choice{.kind = Choice::Kind::kStep, .trip = trip, .piece = index};
    if (reduce ? step != left && IsContested(state, trip, request, piece) : step == Bit(index)) {
      choices.push_back(choice);
    }
    const bool may_be_lost =
        scenario_.freedoms.lossy_writes && request.verbs[piece.verb].kind == VerbKind::kWrite;
    if (may_be_lost && (reduce || step == Bit(index))) ListSwallowing(state, choice, choices);
  }
}

// A CALL or a FENCE conflicts with everything: a FENCE that is in flight might cut off this very trip.
bool World::IsContested(State state, TripIndex trip, const Request& request, const Piece& piece) const {
  if ((piece.rivals & ~DoneOf(state, trip)) != 0) return true;
  for (TripIndex other = 0; other < Trips(state); ++other) {
    if (other == trip || !MayProceed(state, other)) continue;
    const Request& of_other = RequestOf(state, other);
    for (uint64_t left = of_other.all & ~DoneOf(state, other); left != 0; left &= left - 1) {
      const Piece& rival = of_other.pieces[static_cast<size_t>(std::countr_zero(left))];
      if (Conflict(request, piece, of_other, rival, state.region())) return true;
    }
  }
  return false;
}

void World::ListSwallowing(State state, Choice write, std::vector<Choice>& choices) {
  const Piece& stored = RequestOf(state, write.trip).pieces[write.piece];
  write.kind = Choice::Kind::kSwallow;
  for (TripIndex trip = 0; trip < Trips(state); ++trip) {
    if (!MayProceed(state, trip)) continue;
    const Request& request = RequestOf(state, trip);
    const uint64_t done = DoneOf(state, trip);
    const auto pieces = static_cast<uint8_t>(request.pieces.size());  // at most kMostPieces
    for (uint8_t i = 0; i < pieces; ++i) {
      const Piece& piece = request.pieces[i];
      if (!IsAtomic(request.verbs[piece.verb].kind) || (done & Bit(i)) != 0) continue;
      if ((!reduce_ || request.control) && !request.MayStep(i, done)) continue;
      if (trip == write.trip && ((piece.after & Bit(write.piece)) != 0 || (stored.after & Bit(i)) != 0))
        continue;
      if (piece.offset + piece.bytes <= stored.offset || stored.offset + stored.bytes <= piece.offset)
        continue;
      const bool stores = scenario_.freedoms.store_back_failed_cas ||
                          Succeeds(request.verbs[piece.verb], LoadU64(state.region().data() + piece.offset));
      if (!stores) continue;
      write.atomic_trip = trip;
      write.atomic_piece = i;
      choices.push_back(write);
    }
  }
}

void World::ListFaults(State state, TripIndex trip, std::vector<Choice>& choices) {
  const Participant& participant = scenario_.participants[trip];
  if (participant.may_die) {
    const auto deaths = std::ranges::count_if(state.actors(), &ActorState::dead);
    if (static_cast<size_t>(deaths) < scenario_.max_deaths) {
      choices.push_back({.kind = Choice::Kind::kDie, .trip = trip});
    }
  }
  if (participant.may_lose_completion) {
    size_t lost = 0;
    for (const ActorState& actor : state.actors()) lost += static_cast<size_t>(std::popcount(actor.lost));
    if (lost < scenario_.max_lost_completions) {
      choices.push_back({.kind = Choice::Kind::kLose, .trip = trip});
    }
  }
}

}  // namespace farside::check::exhaustive
