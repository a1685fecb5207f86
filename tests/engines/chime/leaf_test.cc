// Leaves of a chime table as plain bytes: making room, dividing, bringing to rest; and how full they get.
#include "index/chime/leaf.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace farside::index::chime {
namespace {

// Of the lower half of the keys, as a leaf has them whose header says nothing else.
uint64_t LowerKey(Random& random) { return random.Next() & ~kMiddle; }
Entry Inline(uint64_t key) { return {.used = true, .key = key, .value = ~key}; }

// Inserts as a client does. False: there is no room.
bool Insert(const Shape& shape, Leaf& leaf, const Entry& entry) {
  const auto path = FindRoom(shape, leaf, HomeOf(shape, entry));
  if (!path.has_value()) return false;
  EXPECT_FALSE(leaf.Get(shape, path->back()).used);
  for (size_t i = path->size() - 1; i > 0; --i) leaf.Set(shape, (*path)[i], leaf.Get(shape, (*path)[i - 1]));
  leaf.Set(shape, (*path)[0], entry);
  return true;
}

bool IsInItsNeighbourhood(const Shape& shape, size_t slot, const Entry& entry) {
  const size_t home = HomeOf(shape, entry);
  return (slot + shape.span - home) % shape.span < shape.neighbourhood;
}

TEST(ChimeLeaf, InsertUntilThereIsNoRoom_EveryEntryStaysInItsNeighbourhood) {
  // Given leaves of several shapes
  // When random keys are inserted until one finds no room
  // Expect all of them, each once, where a search looks for it
  Random random(1);
  for (const size_t span : {1, 2, 3, 7, 64}) {
    for (const size_t neighbourhood : {1, 2, 8, 16}) {
      if (neighbourhood > span) continue;
      const Shape shape{.span = span, .neighbourhood = neighbourhood, .fanout = 4, .inline_keys = true};
      Leaf leaf;
      std::set<uint64_t> keys;
      while (true) {
        const uint64_t key = LowerKey(random);
        if (!Insert(shape, leaf, Inline(key))) break;
        keys.insert(key);
      }
      std::set<uint64_t> found;
      for (size_t slot = 0; slot < span; ++slot) {
        const Entry entry = leaf.Get(shape, slot);
        if (!entry.used) continue;
        EXPECT_TRUE(IsInItsNeighbourhood(shape, slot, entry));
        EXPECT_EQ(entry.value, ~entry.key);
        EXPECT_TRUE(found.insert(entry.key).second);
      }
      EXPECT_EQ(found, keys);
    }
  }
}

TEST(ChimeLeaf, LoadAtSplit_IsAtLeastThatOfThePaper) {
  // Given leaves of 64 entries
  // When random keys are inserted until one finds no room, in many leaves
  // Expect a mean load of at least what the paper has for each neighbourhood (for 4 it has none)
  const std::map<size_t, double> least = {{2, 0.377}, {4, 0.67}, {8, 0.881}, {16, 0.998}};
  Random random(2);
  constexpr int kLeaves = 500;
  for (const auto& [neighbourhood, load] : least) {
    const Shape shape{.span = 64, .neighbourhood = neighbourhood, .fanout = 64, .inline_keys = true};
    uint64_t inserted = 0;
    for (int i = 0; i < kLeaves; ++i) {
      Leaf leaf;
      while (Insert(shape, leaf, Inline(LowerKey(random)))) ++inserted;
    }
    const double mean = static_cast<double>(inserted) / (64.0 * kLeaves);
    EXPECT_GE(mean, load) << neighbourhood;
    RecordProperty("load_" + std::to_string(neighbourhood), std::to_string(mean));
  }
}

TEST(ChimeLeaf, BroughtToRest_WhatLeavesIsClearedAndWhatMovedStandsOnce) {
  // Given a leaf whose owner died while entries were leaving, and one was being moved
  // When it is brought to rest
  // Expect that neither is there any more, that the other copy is, and that `moves` is even
  const Shape shape{.span = 8, .neighbourhood = 8, .fanout = 4, .inline_keys = true};
  Leaf leaf;
  leaf.Set(shape, 0, Inline(10));
  leaf.Set(shape, 1, Inline(20));
  leaf.Set(shape, 3, Inline(30));
  leaf.Set(shape, 5, Inline(10));
  leaf.header.leaving = 1 << 3;
  leaf.header.moves = 7;
  EXPECT_TRUE(Normalize(shape, leaf));
  EXPECT_EQ(leaf.Count(shape), 2u);
  EXPECT_EQ(leaf.Get(shape, 0), Inline(10));
  EXPECT_EQ(leaf.Get(shape, 1), Inline(20));
  EXPECT_EQ(leaf.header.leaving, 0u);
  EXPECT_EQ(leaf.header.moves, 8u);
  // Once more: there is nothing left to do.
  EXPECT_FALSE(Normalize(shape, leaf));
  EXPECT_EQ(leaf.header.moves, 8u);
}

TEST(ChimeLeaf, DividedByPrefix_InTheMiddle_WithTheShortestSeparator) {
  // Given entries of keys=bytes, known by the first 8 bytes of their keys
  // When the leaf is divided
  // Expect halves, and a separator that is no longer than it has to be
  const Shape shape{.span = 8, .neighbourhood = 8};
  Leaf leaf;
  const std::vector<std::string> keys = {"apple", "apricot", "banana", "blueberry", "cherry", "cranberry"};
  for (size_t i = 0; i < keys.size(); ++i)
    leaf.Set(shape, i, {.used = true, .key = PrefixOf(keys[i]), .value = i + 1});
  const std::optional<Division> division = DivideByPrefix(shape, leaf, PrefixOf("date"));
  ASSERT_TRUE(division.has_value());
  EXPECT_EQ(division->separator, "bl");
  EXPECT_EQ(division->leaving, 0b111000u);
}

TEST(ChimeLeaf, KeysThatShareTheirPrefix_AreDividedByTheWholeKey) {
  // Given keys that are equal in their first 8 bytes
  // Expect that their prefixes do not divide them, and that they do
  const Shape shape{.span = 4, .neighbourhood = 4};
  Leaf leaf;
  const std::vector<std::string> keys = {"the same prefix 1", "the same prefix 3", "the same prefix 2", ""};
  for (size_t i = 0; i < 3; ++i) leaf.Set(shape, i, {.used = true, .key = PrefixOf(keys[i]), .value = i + 1});
  EXPECT_FALSE(DivideByPrefix(shape, leaf, PrefixOf("the same prefix 4")).has_value());
  const Division division = DivideByKey(shape, leaf, keys, "the same prefix 4");
  EXPECT_EQ(division.separator, "the same prefix 3");
  EXPECT_EQ(division.leaving, 0b010u);
}

TEST(ChimeKey, PrefixesAndSeparators_AreInTheOrderOfTheKeys) {
  // Given keys that differ little. Expect that prefixes never contradict their order, and that separators
  // separate.
  const std::vector<std::string> keys = {"",
                                         std::string(1, '\0'),
                                         std::string(9, '\0'),
                                         "a",
                                         std::string("a\0", 2),
                                         "aa",
                                         "aaaaaaaa",
                                         "aaaaaaaaa",
                                         "aaaaaaaab",
                                         "b",
                                         std::string(8, '\xff'),
                                         std::string(9, '\xff')};
  for (size_t low = 0; low < keys.size(); ++low) {
    for (size_t high = low + 1; high < keys.size(); ++high) {
      ASSERT_LT(keys[low], keys[high]);
      EXPECT_LE(PrefixOf(keys[low]), PrefixOf(keys[high]));
      const std::string separator = Separator(keys[low], keys[high]);
      EXPECT_LT(keys[low], separator);
      EXPECT_LE(separator, keys[high]);
      EXPECT_TRUE(IsBelow(Key(keys[low]), Bound::Of(separator)));
      EXPECT_FALSE(IsBelow(Key(keys[high]), Bound::Of(separator)));
    }
    EXPECT_TRUE(IsBelow(Key(keys[low]), Bound::Beyond()));
  }
  EXPECT_EQ(TextOf(PrefixOf("abc"), 3), "abc");
}

}  // namespace
}  // namespace farside::index::chime
