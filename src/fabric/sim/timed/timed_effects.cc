// How verbs take effect on the nodes of the timed fabric.
#include <fmt/format.h>

#include <cassert>
#include <cstring>

#include "fabric/sim/timed/timed.h"

namespace farside::fabric::sim {
namespace {

uint64_t LoadWord(std::span<const std::byte> memory, uint64_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, memory.data() + offset, sizeof(word));
  return word;
}
void StoreWord(std::span<std::byte> memory, uint64_t offset, uint64_t word) {
  std::memcpy(memory.data() + offset, &word, sizeof(word));
}

// The region as a handler sees it: nothing else happens while it runs.
class HandlerView final : public NodeMemory {
 public:
  explicit HandlerView(std::span<std::byte> memory) : memory_(memory) {}
  uint64_t bytes() const override { return memory_.size(); }
  uint64_t Load(uint64_t offset) const override {
    assert(offset % 8 == 0 && offset + 8 <= bytes());
    return LoadWord(memory_, offset);
  }
  void Store(uint64_t offset, uint64_t word) override {
    assert(offset % 8 == 0 && offset + 8 <= bytes());
    StoreWord(memory_, offset, word);
  }

 private:
  std::span<std::byte> memory_;
};

}  // namespace

void TimedFabric::Execute(TimedTrip& timed_trip, TimedVerb& timed_verb) {
  const Verb& verb = timed_verb.verb;
  Node& node = nodes_[Index(verb.at.node)];
  const std::span<std::byte> memory = node.region.bytes();
  timed_trip.touched |= Mutates(verb.kind);
  switch (verb.kind) {
    case VerbKind::kRead:
      // Straight to the buffer of the trip, which is there as long as its coroutine waits.
      if (timed_trip.trip != nullptr && verb.size > 0) {
        std::memcpy(verb.into, memory.data() + verb.at.offset, verb.size);
      }
      break;
    case VerbKind::kWrite:
      if (verb.size > 0) {
        std::memcpy(memory.data() + verb.at.offset, timed_trip.payload.data() + timed_verb.at_payload,
                    verb.size);
      }
      break;
    case VerbKind::kCas:
    case VerbKind::kMaskedCas:
    case VerbKind::kFaa: {
      const uint64_t old = LoadWord(memory, verb.at.offset);
      if (Succeeds(verb, old)) StoreWord(memory, verb.at.offset, NewWord(verb, old));
      if (timed_trip.trip != nullptr) timed_trip.trip->verbs[timed_verb.index].old = old;
      break;
    }
    case VerbKind::kCall: ExecuteCall(node, timed_trip, timed_verb); break;
    case VerbKind::kFence: {
      const size_t victim = verb.desired;
      if (victim > last_client_) break;  // no client has that id yet, and a later one is another client
      if (node.cut_off.size() <= victim) node.cut_off.resize(victim + 1);
      node.cut_off[victim] = true;
      break;
    }
  }
}

void TimedFabric::ExecuteCall(Node& node, TimedTrip& timed_trip, const TimedVerb& timed_verb) {
  HandlerView view(node.region.bytes());
  const std::string_view request(
      reinterpret_cast<const char*>(timed_trip.payload.data() + timed_verb.at_payload), timed_verb.verb.size);
  Result<std::string> reply = calls_.Handle(timed_verb.verb.call, view, timed_trip.owner, request);
  const FlushCounts& flushed = view.flushed();
  node.flushed += flushed;
  node.flushing += kPicosPerNano * (static_cast<int64_t>(flushed.lines) * options_.model.flush_line.count() +
                                    static_cast<int64_t>(flushed.drains) * options_.model.drain.count());
  if (reply.ok()) {
    timed_trip.reply = std::move(*reply);
  } else {
    timed_trip.error = reply.error();
  }
}

bool TimedFabric::IsCutOff(const Node& node, ClientId client) {
  return Number(client) < node.cut_off.size() && node.cut_off[Number(client)];
}

Error TimedFabric::Refusal(const TimedTrip& timed_trip) const {
  if (timed_trip.touched) {
    return Error(ErrorCode::kOutcomeUnknown,
                 "this client was fenced in the middle of a trip; the write may or may not have happened: "
                 "read it back after reconnecting");
  }
  return Error(
      ErrorCode::kFenced,
      fmt::format("node {} has cut off client {}: it was taken for dead; nothing was changed; reconnect "
                  "as a new client",
                  Index(*timed_trip.refused_by), Number(timed_trip.owner)));
}

}  // namespace farside::fabric::sim
