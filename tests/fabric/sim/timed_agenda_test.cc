#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "fabric/sim/timed/agenda.h"

namespace farside::fabric::sim {
namespace {

// Given events at random times, near and far, added while others are taken. Expect that they are taken by
// nanosecond; none is lost, none comes twice.
TEST(TimedAgenda, EventsAreTakenInTheOrderOfTheirTimes) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const uint64_t furthest = random.Between(1, 40'000'000) * (seed % 3 == 0 ? 1000 : 1);
    Agenda agenda;
    std::deque<TimedEvent> events;
    std::multimap<Picos, TimedEvent*> expected;  // by nanosecond
    Picos now = 0;
    for (int step = 0; step < 3000; ++step) {
      if (random.Chance(step < 2000 ? 6 : 3, 10)) {
        TimedEvent& event = events.emplace_back();
        event.at = now + static_cast<Picos>(random.LogUniform(furthest));
        expected.emplace(event.at / kPicosPerNano, &event);
        agenda.Add(event);
      } else {
        TimedEvent* const taken = agenda.Take();
        ASSERT_EQ(taken == nullptr, expected.empty());
        if (taken == nullptr) continue;
        ASSERT_EQ(taken->at / kPicosPerNano, expected.begin()->first);
        const auto [first, last] = expected.equal_range(taken->at / kPicosPerNano);
        const auto found =
            std::find_if(first, last, [taken](const auto& entry) { return entry.second == taken; });
        ASSERT_NE(found, last);
        expected.erase(found);
        now = std::max(now, taken->at);
      }
    }
  }
}

// Given events at one time, some of which were far away when they were added. Expect the order of adding, as
// far as they were added to the same part.
TEST(TimedAgenda, EventsOfOneTimeKeepTheirOrder) {
  for (const Picos at : {Picos{5'000}, Picos{20'000'000}, Picos{3'600'000'000'000'000}}) {
    Agenda agenda;
    std::vector<TimedEvent> events(100);
    for (TimedEvent& event : events) {
      event.at = at;
      agenda.Add(event);
    }
    for (TimedEvent& event : events) EXPECT_EQ(agenda.Take(), &event);
    EXPECT_EQ(agenda.Take(), nullptr);
  }
}

// Given an event whose time has passed. Expect that it happens next.
TEST(TimedAgenda, WhatIsLateHappensNext) {
  Agenda agenda;
  TimedEvent first;
  first.at = 10'000'000;
  TimedEvent later;
  later.at = 10'002'000;
  agenda.Add(first);
  agenda.Add(later);
  EXPECT_EQ(agenda.Take(), &first);
  TimedEvent late;
  late.at = 5;
  agenda.Add(late);
  EXPECT_EQ(agenda.Take(), &late);
  EXPECT_EQ(agenda.Take(), &later);
}

}  // namespace
}  // namespace farside::fabric::sim
