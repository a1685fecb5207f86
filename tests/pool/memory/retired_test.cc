#include "pool/memory/retired.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/random.h"
#include "tests/support/heap_count.h"

namespace farside::pool {
namespace {

constexpr uint64_t kNone = ~uint64_t{0};

TEST(RetiredQueue, OldestBirthIsTheSmallestOfAllThatWait) {
  // Given operations that began in any order and retire in any order.
  // When blocks come and are given back, oldest first.
  // Expect the smallest birth among those left, at any time.
  RetiredQueue queue;
  std::deque<uint64_t> model;
  Random random(3);
  EXPECT_EQ(queue.OldestBirth(), kNone);
  for (uint64_t i = 0; i < 20'000; ++i) {
    if (random.Chance(1, 2) || model.empty()) {
      const uint64_t birth = i / 8 + random.Below(20);
      queue.Push({.birth = birth});
      model.push_back(birth);
    } else {
      const uint64_t count = 1 + random.Below(model.size());
      for (uint64_t j = 0; j < count; ++j) {
        queue[queue.first() + j].done = true;
        model.pop_front();
      }
      queue.PopDone();
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(queue.OldestBirth(), model.empty() ? kNone : *std::min_element(model.begin(), model.end()));
  }
}

TEST(RetiredQueue, WhatIsDoneInTheMiddleWaitsForThoseBeforeIt) {
  RetiredQueue queue;
  for (uint64_t birth : {5, 3, 9}) queue.Push({.birth = birth});
  queue[queue.first() + 1].done = true;
  queue.PopDone();
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.OldestBirth(), 3u) << "too small is safe";
  queue[queue.first()].done = true;
  queue.PopDone();
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.OldestBirth(), 9u);
}

TEST(RetiredQueue, OnlyWhatWasRetiredBeforeTheSyncIsStamped) {
  // Given two blocks, a sync that is posted, and a third block before its answer comes.
  RetiredQueue queue;
  queue.Push({.birth = 1});
  queue.Push({.birth = 1});
  const uint64_t before = queue.end();
  queue.Push({.birth = 1});
  queue.Stamp(before, 7);
  EXPECT_EQ(queue[0].stamp, 7u);
  EXPECT_EQ(queue[1].stamp, 7u);
  EXPECT_EQ(queue[2].stamp, Retired::kUnstamped);
  // A later sync stamps the rest, and nothing twice.
  queue.Stamp(queue.end(), 9);
  EXPECT_EQ(queue[1].stamp, 7u);
  EXPECT_EQ(queue[2].stamp, 9u);
}

TEST(RetiredQueue, StampingGoesOnAfterItemsHaveLeft) {
  RetiredQueue queue;
  queue.Push({.never_seen = true, .birth = 1});
  queue[0].done = true;
  queue.PopDone();
  queue.Push({.birth = 1});
  queue.Stamp(queue.end(), 4);
  EXPECT_EQ(queue[1].stamp, 4u);
}

TEST(RetiredQueue, ASteadyStateUsesNoHeap) {
  RetiredQueue queue;
  const auto turn = [&] {
    for (uint64_t i = 0; i < 1000; ++i) queue.Push({.birth = i});
    queue.Stamp(queue.end(), 1);
    for (uint64_t number = queue.first(); number < queue.end(); ++number) queue[number].done = true;
    queue.PopDone();
  };
  turn();
  const uint64_t before = HeapAllocations();
  for (int i = 0; i < 100; ++i) turn();
  if (kHeapIsCounted) {
    EXPECT_EQ(HeapAllocations(), before);
  }
  EXPECT_EQ(queue.end(), 101'000u);
}

}  // namespace
}  // namespace farside::pool
