// A simulated memory node: its region, the clients that it has cut off, and what is half done on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/address.h"
#include "fabric/service.h"
#include "fabric/sim/flight.h"

namespace farside::fabric::sim {

class SimNode {
 public:
  explicit SimNode(uint64_t bytes)
      : lines_((bytes + kLineBytes - 1) / kLineBytes),
        memory_(reinterpret_cast<std::byte*>(lines_.data()), bytes) {}
  SimNode(SimNode&&) = default;  // the lines stay where they are

  // Aligned like the real thing: to a line at least.
  std::span<std::byte> memory() { return memory_; }
  uint64_t Word(uint64_t offset) const;
  void SetWord(uint64_t offset, uint64_t word);

  uint64_t incarnation() const { return incarnation_; }
  // The handler that is running stops where it is: its further stores never become visible.
  void StopHandler();
  // Nothing may be half done any more. The region is gone, unless it is persistent.
  void Restart(bool keep_memory);

  void CutOff(ClientId client) { fenced_.insert(client); }
  bool IsCutOff(ClientId client) const { return fenced_.contains(client); }

  // ---- pieces of verbs
  void Sample(Flight& flight, const Piece& piece);
  void Store(const Flight& flight, const Piece& piece);

  // An atomic in one step, or in two with others in between. While one is between its steps, others on
  // the same word wait (see AtomicOn), READs see the old word, and what a WRITE stores is lost.
  void Fetch(Flight& flight, FlightVerb& verb);
  void StoreBack(FlightVerb& verb);
  void Forget(FlightVerb& verb);  // its second step will never happen
  struct OpenAtomic {
    Flight* flight = nullptr;
    FlightVerb* verb = nullptr;
  };
  // The atomic on this word that is between its steps; null flight if there is none.
  OpenAtomic AtomicOn(uint64_t offset) const;

  // Runs a handler. Its stores become visible one by one, by DrainOne; the next handler waits for that.
  void RunHandler(const CallTable& calls, Flight& flight, FlightVerb& verb);
  // The Call whose stores are not all visible yet, or null.
  Flight* calling() const { return calling_; }
  // Makes the next store visible. True: that was the last one, or there was none.
  bool DrainOne();

 private:
  struct CpuStore {
    uint64_t offset;
    uint64_t word;
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
  std::vector<CpuStore> cpu_stores_;
  size_t visible_stores_ = 0;
};

}  // namespace farside::fabric::sim
