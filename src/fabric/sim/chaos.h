// How unkind the simulated world is: the chances of everything the contract leaves open.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/random.h"

namespace farside::fabric::sim {

// A probability as numerator over kOneIn; 0 switches a freedom off.
inline constexpr uint32_t kOneIn = 1024;

struct Chaos {
  // Virtual time that passes per event.
  Nanos tick{100};

  // ---- freedoms of the contract that need no fault
  uint32_t tear = 512;          // an access of several lines is taken line by line, others coming between
  uint32_t split_atomic = 256;  // an atomic fetches first and stores back later; a WRITE in between is lost
  bool store_back_failed_cas = true;  // also beside a CAS that fails
  uint32_t delay_verb = 128;          // a posted trip takes its time on the way
  uint32_t delay_answer = 128;        // so does its completion
  Nanos longest_delay{20'000};
  bool ordered_reads = true;  // false: two READs of a trip may be sampled in any order

  // ---- faults, at any event of a client
  uint32_t sleep = 0;  // the client stops for a while and then goes on as if nothing had been
  Nanos longest_sleep{2'000'000};
  uint32_t lose_completion = 0;  // the connection breaks; what was in flight may or may not take effect
  uint32_t crash = 0;            // the client is gone; what was in flight may or may not take effect

  uint32_t most_faults = 8;  // in all; then no more happen by chance

  // ---- faults of durable nodes, at any step of a handler and, less likely, at any event of a client
  uint32_t power_cut = 0;
  static constexpr uint32_t kStepsPerEvent = 8;  // how much more likely

  uint32_t most_power_cuts = 3;  // beside the other faults

  bool has_faults() const { return has_client_faults() || power_cut > 0; }
  bool has_client_faults() const { return sleep + lose_completion + crash > 0; }

  // No freedom is used: every trip takes effect at once and in order. For tests of other things.
  static Chaos Calm() {
    Chaos calm;
    calm.tear = calm.split_atomic = calm.delay_verb = calm.delay_answer = 0;
    calm.store_back_failed_cas = false;
    return calm;
  }

  // A mix that differs from seed to seed, because some bugs want long delays and others dense
  // interleavings. `faults` allows sleeps, lost completions and crashes; not power cuts, which few worlds can
  // stand (see PowerCutsForSeed).
  static Chaos ForSeed(uint64_t seed, bool faults) {
    Random random(seed ^ 0xc4a05);
    Chaos chaos;
    chaos.tear = Level(random);
    chaos.split_atomic = Level(random) / 2;
    chaos.delay_verb = Level(random) / 2;
    chaos.delay_answer = Level(random) / 2;
    chaos.longest_delay = Nanos(1000 << random.Below(8));
    chaos.ordered_reads = random.Chance(3, 4);
    chaos.store_back_failed_cas = Random(seed ^ 0xfa11ed).Chance(1, 2);
    if (faults) {
      chaos.sleep = random.Chance(1, 2) ? 8 : 0;
      chaos.lose_completion = random.Chance(1, 2) ? 6 : 0;
      chaos.crash = random.Chance(1, 2) ? 6 : 0;
    }
    return chaos;
  }
  // The chance of power cuts; none for some seeds. Checked runs have some hundred steps, and the first of
  // them make the pool's tables: most of the cuts are to come later.
  static uint32_t PowerCutsForSeed(uint64_t seed) {
    constexpr uint32_t kChances[] = {0, 3, 10, 40};
    return kChances[Random(seed ^ 0x90e4).Below(4)];
  }

 private:
  static uint32_t Level(Random& random) {
    constexpr uint32_t kLevels[] = {0, 64, 256, 512, 896};
    return kLevels[random.Below(5)];
  }
};

}  // namespace farside::fabric::sim
