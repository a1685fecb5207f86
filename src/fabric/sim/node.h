// A simulated memory node: its region, the clients that it has cut off, and what is half done on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/address.h"
#include "fabric/service.h"
#include "fabric/sim/durable_words.h"
#include "fabric/sim/flight.h"

namespace farside::fabric::sim {

class SimNode {
 public:
  // What handlers of a durable node have flushed and drained survives a power cut.
  SimNode(uint64_t bytes, bool durable)
      : lines_((bytes + kLineBytes - 1) / kLineBytes),
        memory_(reinterpret_cast<std::byte*>(lines_.data()), bytes) {
    if (durable) durable_words_.emplace();
  }
  SimNode(SimNode&&) = default;  // the lines stay where they are

  // Aligned like the real thing: to a line at least. What is stored by this way is durable at once.
  std::span<std::byte> memory() { return memory_; }
  uint64_t Word(uint64_t offset) const;
  void SetWord(uint64_t offset, uint64_t word);

  bool durable() const { return durable_words_.has_value(); }

  uint64_t incarnation() const { return incarnation_; }
  // The handler that is running stops where it is: its further steps never happen.
  void StopHandler();
  // Nothing may be half done any more. The region is gone, unless it is persistent.
  void Restart(bool keep_memory);
  // The same for a durable node whose power was cut: of what is not durable, `random` says what survives.
  // Returns how many words have fallen back to an older value.
  size_t RestartAfterPowerCut(Random& random);

  void CutOff(ClientId client) { fenced_.insert(client); }
  bool IsCutOff(ClientId client) const { return fenced_.contains(client); }

  // ---- pieces of verbs
  void Sample(Flight& flight, const Piece& piece);
  void Store(const Flight& flight, const Piece& piece);

  // An atomic in one step, or in two with others in between. While one is between its steps, others on
  // the same word wait (see AtomicOn), READs see the old word, and what a WRITE stores is lost. One that has
  // failed stores nothing, unless failed CAS store back what they have read.
  void Fetch(Flight& flight, FlightVerb& verb);
  void StoreBack(FlightVerb& verb, bool even_if_failed);
  void Forget(FlightVerb& verb);  // its second step will never happen
  struct OpenAtomic {
    Flight* flight = nullptr;
    FlightVerb* verb = nullptr;
  };
  // The atomic on this word that is between its steps; null flight if there is none.
  OpenAtomic AtomicOn(uint64_t offset) const;

  // Runs a handler. Its steps happen one by one, by StepHandler; the next handler waits for that. Steps are
  // stores, and flushes and drains if the node is durable.
  void RunHandler(const CallTable& calls, Flight& flight, FlightVerb& verb);
  // The Call whose steps have not all happened yet, or null.
  Flight* calling() const { return calling_; }
  // Whether the handler that is running has a step left: one that has not must still be stepped once.
  bool HasStep() const { return next_step_ < cpu_steps_.size(); }
  // Makes the next store visible, or carries out the next flush or drain. True: that was the last step, or
  // there was none.
  bool StepHandler();
  // By all handlers so far, also by those that a power cut has stopped before they came to it.
  const FlushCounts& flushed() const { return flushed_; }

 private:
  struct CpuStep {
    enum class Kind : uint8_t { kStore, kFlush, kDrain };
    Kind kind;
    uint64_t offset;
    uint64_t word_or_size;
  };
  // What a handler sees: the region with the stores that others cannot see yet.
  class HandlerView;

  struct alignas(kLineBytes) Line {
    std::array<std::byte, kLineBytes> bytes{};
  };
  std::vector<Line> lines_;
  std::span<std::byte> memory_;
  uint64_t incarnation_ = 1;
  std::set<ClientId> fenced_;
  std::vector<OpenAtomic> open_atomics_;
  Flight* calling_ = nullptr;
  std::vector<CpuStep> cpu_steps_;
  size_t next_step_ = 0;
  FlushCounts flushed_;
  std::optional<DurableWords> durable_words_;
};

}  // namespace farside::fabric::sim
