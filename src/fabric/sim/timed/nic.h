// The card of a node in the timed fabric, and what of it is scarce.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "fabric/sim/timed/nic_model.h"
#include "fabric/sim/timed/server.h"

namespace farside::fabric::sim {

// The model as times, per item.
struct NicTimes {
  explicit NicTimes(const NicModel& model)
      : memory_verb(Each(model.memory_verbs_per_second)),
        compute_verb(Each(model.compute_verbs_per_second)),
        atomic(Each(model.atomics_per_second)),
        atomic_on_word(Each(model.atomics_per_second_on_one_word)),
        kibibyte(static_cast<Picos>(8 * 1024 * kPicosPerSecond / model.bits_per_second)) {}

  Picos OnWire(uint64_t bytes) const { return static_cast<Picos>(bytes) * kibibyte / 1024; }

  Picos memory_verb;
  Picos compute_verb;
  Picos atomic;
  Picos atomic_on_word;

 private:
  static constexpr uint64_t kPicosPerSecond = 1'000'000'000'000;
  static Picos Each(uint64_t per_second) { return static_cast<Picos>(kPicosPerSecond / per_second); }

  Picos kibibyte;
};

class Nic {
 public:
  Server verbs;  // executed and sent alike: where a machine lends memory and computes, both share it
  Server out;    // the wire, each way
  Server in;

  // `count` verbs that take `each` come together. The first costs no more than the base latency has in it.
  Picos Process(Picos at, uint64_t count, Picos each) {
    const auto many = static_cast<Picos>(count);
    return verbs.Serve(at, (many - 1) * each, many * each);
  }
  // The sender's side of the wire is where a message takes its time; the receiver's only limits how many come
  // at once.
  Picos Send(Picos at, Picos on_wire) { return out.Serve(at, on_wire, on_wire); }
  Picos Receive(Picos at, Picos on_wire) { return in.Serve(at, 0, on_wire); }
};

// What a memory node's card has for atomics: so many a second, and fewer on one word, because they exclude
// each other for as long as one of them reads and writes across the bus.
class AtomicUnit {
 public:
  Picos Execute(Picos at, uint64_t offset, const NicTimes& times) {
    const Picos executed = unit_.Serve(at, 0, times.atomic);
    return std::max(executed, (*words_)[SlotOf(offset)].Serve(at, 0, times.atomic_on_word));
  }

  const Server& unit() const { return unit_; }
  // The word that was busiest.
  const Server& HottestWord(Picos now) const {
    return *std::max_element(words_->begin(), words_->end(),
                             [now](const Server& a, const Server& b) { return a.Busy(now) < b.Busy(now); });
  }
  void ResetUse(Picos now) {
    unit_.ResetUse(now);
    for (Server& word : *words_) word.ResetUse(now);
  }

 private:
  // Words share slots, so that nothing grows with the region; two of them meet by chance once in so many.
  static constexpr uint32_t kSlotBits = 12;
  static size_t SlotOf(uint64_t offset) {
    return static_cast<size_t>((offset / 8 * 0x9e3779b97f4a7c15) >> (64 - kSlotBits));
  }

  Server unit_;
  std::unique_ptr<std::array<Server, 1 << kSlotBits>> words_ =
      std::make_unique<std::array<Server, 1 << kSlotBits>>();
};

}  // namespace farside::fabric::sim
