// How the pieces of verbs take effect on the simulated nodes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>

#include "fabric/sim/sim.h"

namespace farside::fabric::sim {
namespace {

// READs that the contract bounds in time (see CloseWindows).
bool HasWindow(const Verb& verb) {
  return verb.kind == VerbKind::kRead && verb.size <= kWindowBytes &&
         verb.at.offset / kPageBytes == (verb.at.offset + verb.size - 1) / kPageBytes;
}

}  // namespace

void SimFabric::TakeEffect(Flight& flight, FlightVerb& verb, bool one_piece) {
  flight.last_effect = ++effects_;
  flight.touched |= Mutates(verb.verb.kind);
  switch (verb.verb.kind) {
    case VerbKind::kCas:
    case VerbKind::kMaskedCas:
    case VerbKind::kFaa: return TakeEffectOnWord(flight, verb);
    case VerbKind::kCall: return TakeEffectByCpu(flight, verb);
    case VerbKind::kFence: return TakeEffectOfFence(flight, verb);
    case VerbKind::kRead:
    case VerbKind::kWrite: break;
  }

  SimNode& node = nodes_[Index(verb.verb.at.node)];
  uint64_t now = verb.pending;
  if (one_piece && std::popcount(now) > 1) {
    uint64_t skip = random_.Below(static_cast<uint64_t>(std::popcount(now)));
    while (skip-- > 0) now &= now - 1;
    now &= ~now + 1;
  }
  for (uint64_t rest = now; rest != 0; rest &= rest - 1) {
    const Piece piece = verb.PieceAt(static_cast<uint32_t>(std::countr_zero(rest)));
    if (verb.verb.kind == VerbKind::kRead) {
      node.Sample(flight, piece);
    } else {
      node.Store(flight, piece);
    }
    if (options_.digest != nullptr) options_.digest->TookEffect(now_, flight, verb, piece);
    if (tracing()) {
      const std::span<const std::byte> bytes(flight.buffer.data() + piece.at_buffer, piece.bytes);
      Say(flight.owner,
          fmt::format("#{} {} {} {}", verb.number, Name(verb.verb.kind),
                      options_.trace->Where(FarAddr(verb.verb.at.node, piece.offset)), Trace::Brief(bytes)));
    }
  }
  verb.pending &= ~now;
  if (verb.pending == 0) return FinishVerb(flight, verb);
  if (verb.window == 0 && HasWindow(verb.verb)) {
    verb.window = effects_;
    windows_.push_back({&flight, &verb});
  }
}

// INVARIANT sim/2. A trip whose client had seen another trip complete, with an effect inside a READ's window,
// is a full round trip later than that effect: the READ is finished first.
void SimFabric::CloseWindows(const Flight& flight) {
  for (size_t i = 0; i < windows_.size();) {
    const OpenWindow window = windows_[i];
    if (window.flight->owner != flight.owner && flight.causal_floor >= window.verb->window) {
      TakeEffect(*window.flight, *window.verb, false);  // removes the window
    } else {
      ++i;
    }
  }
}

void SimFabric::TakeEffectOnWord(Flight& flight, FlightVerb& verb) {
  SimNode& node = nodes_[Index(verb.verb.at.node)];
  if (!verb.fetched) {
    // INVARIANT sim/3. An atomic that is between its two steps on this word goes first.
    const SimNode::OpenAtomic open = node.AtomicOn(verb.verb.at.offset);
    if (open.flight != nullptr) TakeEffect(*open.flight, *open.verb, false);
    node.Fetch(flight, verb);
    if (CrashesMid(verb) || random_.Chance(options_.chaos.split_atomic, kOneIn)) {
      if (tracing())
        Say(flight.owner,
            fmt::format("#{} {} fetches {:#x}", verb.number, options_.trace->What(verb.verb), verb.verb.old));
      return;
    }
  }
  node.StoreBack(verb, options_.chaos.store_back_failed_cas);
  if (tracing()) {
    Say(flight.owner, fmt::format("#{} {} found {:#x}: {}", verb.number, options_.trace->What(verb.verb),
                                  verb.verb.old, Succeeds(verb.verb, verb.verb.old) ? "done" : "FAILED"));
  }
  FinishVerb(flight, verb);
}

void SimFabric::TakeEffectByCpu(Flight& flight, FlightVerb& verb) {
  SimNode& node = nodes_[Index(verb.verb.at.node)];
  if (power_cut_due_ == verb.verb.at.node) return;
  if (!verb.fetched) {
    while (Flight* other = node.calling()) {
      TakeEffect(*other, other->verbs.front(), false);
      if (power_cut_due_ == verb.verb.at.node) return;
    }
    node.RunHandler(calls_, flight, verb);
    if (tracing())
      Say(flight.owner, fmt::format("#{} {} is handled", verb.number, options_.trace->What(verb.verb)));
    // Between what it has loaded and what it stores, others come and go: a handler is no atomic.
    if (random_.Chance(options_.chaos.tear, kOneIn)) return;
  }
  if (StepHandler(verb.verb.at.node)) FinishVerb(flight, verb);
}

// As SimNode::StepHandler.
bool SimFabric::StepHandler(NodeId id) {
  SimNode& node = nodes_[Index(id)];
  const bool counts = node.durable() && node.HasStep();
  const bool last = node.StepHandler();
  if (counts) {
    ExactPowerCut(id);
    RandomPowerCut(id, 1);
    ++handler_steps_;
  }
  return last;
}

// INVARIANT sim/4. What the victim has not done on this node by now, it never will.
void SimFabric::TakeEffectOfFence(Flight& flight, FlightVerb& verb) {
  const auto victim = static_cast<ClientId>(verb.verb.desired);
  const NodeId node = verb.verb.at.node;
  if (tracing())
    Say(flight.owner,
        fmt::format("#{} fences client {} on node {}", verb.number, Number(victim), Index(node)));
  nodes_[Index(node)].CutOff(victim);
  for (Flight* other : flights_) {
    if (other->owner == victim) Refuse(*other, node);
  }
  if (!flight.IsDone(verb)) FinishVerb(flight, verb);  // a client may fence itself
}

void SimFabric::FinishVerb(Flight& flight, FlightVerb& verb) {
  flight.Finish(verb);
  if (options_.digest != nullptr) options_.digest->Finished(now_, flight, verb);
  if (verb.window != 0)
    std::erase_if(windows_, [&](const OpenWindow& window) { return window.verb == &verb; });
}

void SimFabric::Drop(Flight& flight, FlightVerb& verb) {
  SimNode& node = nodes_[Index(verb.verb.at.node)];
  if (verb.fetched && IsAtomic(verb.verb.kind)) {
    // Between its two steps it may go either way.
    if (random_.Chance(1, 2)) {
      node.StoreBack(verb, options_.chaos.store_back_failed_cas);
    } else {
      node.Forget(verb);
    }
  }
  if (node.calling() == &flight) {
    // The node's CPU does not die with the client, but by a power cut.
    while (!StepHandler(verb.verb.at.node)) {
      if (power_cut_due_ == verb.verb.at.node) break;
    }
    node.StopHandler();
  }
  flight.cut = true;
  verb.dropped = true;
  verb.pending = 0;
  FinishVerb(flight, verb);
}

void SimFabric::DropAll(Flight& flight) {
  for (FlightVerb& verb : flight.verbs) {
    if (!flight.IsDone(verb)) Drop(flight, verb);
  }
}

bool SimFabric::IsRefused(const Flight& flight, const FlightVerb& verb) const {
  const SimNode& node = nodes_[Index(verb.verb.at.node)];
  return node.IsCutOff(flight.owner) || verb.incarnation != node.incarnation();
}

// Its verbs on other nodes go on; so what to tell the client is known only when all have landed.
void SimFabric::Refuse(Flight& flight, NodeId node) {
  for (FlightVerb& verb : flight.verbs) {
    if (verb.verb.at.node != node || flight.IsDone(verb)) continue;
    Drop(flight, verb);
    flight.refused_by = node;
  }
}

Error SimFabric::Refusal(const Flight& flight) const {
  const uint16_t node = Index(*flight.refused_by);
  const bool fenced = nodes_[node].IsCutOff(flight.owner);
  if (flight.touched) {
    return Error(
        ErrorCode::kOutcomeUnknown,
        fmt::format("{} in the middle of a trip; the write may or may not have happened: read it back "
                    "after reconnecting",
                    fenced ? "this client was fenced" : "the node restarted"));
  }
  if (fenced) {
    return Error(ErrorCode::kFenced,
                 fmt::format("node {} has cut off client {}: it was taken for dead; nothing was "
                             "changed; reconnect as a new client",
                             node, Number(flight.owner)));
  }
  return Error(ErrorCode::kUnavailable,
               fmt::format("node {} has restarted; nothing was changed; reconnect as a new client", node));
}

}  // namespace farside::fabric::sim
