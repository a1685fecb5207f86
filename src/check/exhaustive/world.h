// The steps that the world of a scenario can take.
//
// A trip is in flight from the moment when its client wants it, and its verbs take effect piece by piece,
// in every order that the contract allows. When the last piece has taken effect the client knows the
// answers; a slower completion would only make the history easier to explain.
//
// A client dies, or loses a completion, when no verb of a trip has taken effect yet: the trip becomes an
// orphan, whose verbs take effect later, or never. So there is no need to let it happen in the middle of a
// trip: orphans can do what the trip would have done.
//
// REDUCTION. Take any run, and any piece of a trip that is not the trip's last. Between the piece and the
// next one of its trip, others may take steps; as long as these do not conflict with the piece (in the state
// that they meet, one changes a word that the other reads or writes), the piece may as well take effect after
// them: no client sees a difference, except that an operation may begin later, which is harder to explain. So
// it is enough to let a piece take effect just before a piece of another client that conflicts with it, or
// just before a later piece of its own trip. Hence a trip takes one of these steps:
//   - all that is left of it takes effect at once;
//   - a piece does, with all that must precede it, if another trip in flight has a piece that conflicts with
//     it;
//   - what is left of a READ does whose window is open: the end of a window is not put off, because it bars
//     others. (Its beginning may be.)
// tests/check/exhaustive/monitor_test.cc compares what random programs can see with and without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/exhaustive/conclusion.h"
#include "check/exhaustive/monitor.h"
#include "check/exhaustive/observation_tree.h"
#include "check/exhaustive/scenario.h"
#include "check/exhaustive/state.h"
#include "check/exhaustive/trace.h"

namespace farside::check::exhaustive {

// A trip in flight: those of the clients come first, then the orphans.
using TripIndex = uint8_t;

struct Choice {
  enum class Kind : uint8_t {
    kStep,     // a piece of a trip takes effect, and before it those that must
    kFinish,   // all that is left of a trip takes effect
    kClose,    // all that is left of a READ whose window is open; `piece` is one of them
    kSwallow,  // a WRITE and an atomic, which overwrites what the WRITE stored in its word
    kLocal,    // a client does what needs no trip
    kDie,
    kLose,  // a client loses a completion
  };
  Kind kind = Kind::kStep;
  TripIndex trip = 0;
  uint8_t piece = 0;
  TripIndex atomic_trip = 0;  // of kSwallow
  uint8_t atomic_piece = 0;
};

class World {
 public:
  explicit World(const Scenario& scenario);

  const StateLayout& layout() const { return layout_; }

  void Begin(State state);
  // Appends all steps that can be taken; the same ones in the same order in every run.
  void ListChoices(State state, std::vector<Choice>& choices);
  void Take(State state, Choice choice);
  // Looks at a state that was reached for the first time. `choices`: how many steps it can take.
  void Inspect(State state, size_t choices);

  // The first thing that went wrong; then the state is not to be used any more.
  const std::optional<Problem>& problem() const { return problem_; }
  // For a search that goes on elsewhere.
  void ForgetProblem() { problem_.reset(); }

  // Some client has posted more trips than it may: what the state would lead to is unknown.
  bool cut() const { return cut_; }
  void ForgetCut() { cut_ = false; }

  // Everything that happens is written there. Null: nowhere.
  void set_trace(Trace* trace) { trace_ = trace; }

  uint64_t runs() const { return tree_.runs(); }
  size_t histories() const { return monitor_.histories(); }

 private:
  class SetUpWire;

  void SetUp();

  // ---- choices
  bool ListPreparation(State state, std::vector<Choice>& choices) const;
  bool MayStart(State state, size_t actor) const;
  bool AllEnded(State state, int before_phase) const;
  void ListSteps(State state, TripIndex trip, std::vector<Choice>& choices);
  bool IsContested(State state, TripIndex trip, const Request& request, const Piece& piece) const;
  void ListSwallowing(State state, Choice write, std::vector<Choice>& choices);
  void ListFaults(State state, TripIndex trip, std::vector<Choice>& choices);

  // ---- flights
  bool IsOrphan(TripIndex trip) const { return trip >= layout_.actors(); }
  TripIndex Trips(State state) const;
  const Request& RequestOf(State state, TripIndex trip) const;
  uint64_t DoneOf(State state, TripIndex trip) const;
  bool MayProceed(State state, TripIndex trip) const;  // it has a trip, and no window bars it

  // ---- steps
  void StepAll(State state, TripIndex trip, uint64_t pieces);
  void Step(State state, TripIndex trip, const Request& request, uint8_t piece);
  void Swallow(State state, const Choice& choice);
  void DoLocally(State state, size_t actor);
  void Die(State state, size_t actor);
  void LoseCompletion(State state, size_t actor);

  void BeginTrip(State state, size_t actor);
  void MarkDone(State state, TripIndex trip, uint8_t piece);
  void Answer(State state, TripIndex trip, const Piece& piece, std::span<const std::byte> answer);
  void KeepAnswers(State state, TripIndex trip);
  void Land(State state, TripIndex trip);
  void RunCall(State state, TripIndex trip);
  void Fence(State state, fabric::ClientId victim);

  void Observe(State state, size_t actor, uint32_t observation);
  void RunLocalSteps(State state, size_t actor);
  void Retire(ActorState& actor, const Node& node);
  void Apply(State state, const Mark& mark);
  void ApplyEvent(State state, uint32_t event);
  void AddOrphan(State state, uint32_t request, Windows barred_from);

  Windows OpenWindows(State state, size_t of_others_than) const;
  void CloseWindows(State state, Windows windows) const;

  void Report(Conclusion conclusion, std::string what);
  uint64_t TraceRun(State state, TripIndex trip, uint8_t first, uint64_t pieces);
  void TracePart(State state, TripIndex trip, const Piece& part, std::string_view remark);

  const Scenario& scenario_;
  StateLayout layout_;
  const bool reduce_;
  Monitor monitor_;
  ObservationTree tree_;
  std::vector<std::byte> first_region_;
  std::vector<uint32_t> first_events_;
  std::vector<std::byte> answer_;  // scratch
  std::optional<Problem> problem_;
  bool cut_ = false;
  Trace* trace_ = nullptr;
};

}  // namespace farside::check::exhaustive
