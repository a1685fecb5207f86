// What is explored: a tiny region, a few clients with a program each, and the freedoms they have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/address.h"
#include "fabric/service.h"
#include "farside/result.h"
#include "farside/task.h"

namespace farside::check {

class Actor;

// What a client does. It runs many times from the start, each time with other answers, so that all it does
// must follow from the answers to its trips: no shared state, no clock but the client's, no randomness but
// seeded. The actor outlives the task.
//
// A program that ends with an error has given up, and is reported as stuck, unless its connection was lost
// or fenced; what may fail is awaited with .Outcome().
using Program = std::function<Task<Done>(Actor& self)>;

struct Participant {
  Program program;
  bool may_die = false;  // before any of its verbs; those in flight may take effect later, or never
  bool may_lose_completion = false;  // of any of its trips, which may take effect later, or never
  int phase = 0;                     // starts when all of lower phases have ended or died
};

// Freedoms of the contract beyond the order of verbs, which is always explored. Each costs states.
struct Freedoms {
  bool tear_reads = false;    // READs of several lines are sampled line by line, in any order
  bool tear_writes = false;   // WRITEs of several lines arrive line by line, in any order
  bool ordered_reads = true;  // false: two READs of a trip may be sampled in any order
  // Clients are told that READs keep their order (Client::orders_reads). Otherwise they do not rely on it,
  // whether it is so or not.
  bool promise_ordered_reads = false;
  // A WRITE to a word on which an atomic of another client is in flight may be swallowed by it: both at one
  // moment.
  bool lossy_writes = true;
  // Also by a CAS that fails; clients are told (Client::stores_back_failed_cas).
  bool store_back_failed_cas = true;
};

// Says what is wrong with the region, or nothing.
using RegionCheck = std::function<std::optional<std::string>(std::span<const std::byte> region)>;

struct Scenario {
  uint64_t region_bytes = fabric::kLineBytes;
  Program set_up;  // runs alone on the zeroed region before anything else; may be empty
  std::vector<Participant> participants;
  Freedoms freedoms;
  // What a client does before its first operation it does alone, one client after the other, at the start of
  // their phase, and nothing goes wrong meanwhile. For clients that join a pool first, if that is not what is
  // explored.
  bool prepare_in_turn = false;
  size_t max_deaths = 1;
  size_t max_lost_completions = 1;

  const fabric::CallTable* calls = nullptr;              // a Call takes effect in one step
  RegionCheck invariant;                                 // holds in every state; may be empty
  RegionCheck final_check;                               // holds when all have ended or died; may be empty
  std::function<std::string(fabric::FarAddr)> describe;  // names addresses in traces; may be empty

  uint64_t max_states = 20'000'000;
  // Trips of one client. A run that needs more is cut, which makes the search incomplete: Exploration::cut.
  // One that spins until others go on always needs more, unless its waiting has an end, or it calls
  // Actor::Forget.
  uint32_t max_trips = 100;
  // Leaves out interleavings that no client can tell from others, see World. Not if there is an invariant or
  // a final check, which would see more of the region than clients do.
  bool reduce = true;
};

}  // namespace farside::check
