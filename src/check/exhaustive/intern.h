// Small tables that the search lives on: byte strings by number, numbers by number, and a set of hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace farside::check::exhaustive {

// Numbers byte strings, from 0 on in the order of first sight. Equal strings get equal numbers.
class Interner {
 public:
  Interner();

  uint32_t Intern(std::span<const std::byte> bytes);
  // Valid until the next Intern.
  std::span<const std::byte> operator[](uint32_t id) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t hash;
    size_t begin;
    size_t size;
  };

  void Grow();

  std::vector<std::byte> bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> buckets_;  // open addressing; id + 1, 0 is empty
};

// A map between numbers. The key ~0 is not allowed.
class NumberMap {
 public:
  NumberMap();

  // Null if it is not there. Valid until the next Insert.
  const uint32_t* Find(uint64_t key) const;
  // The key must not be there yet.
  void Insert(uint64_t key, uint32_t value);

 private:
  struct Slot {
    uint64_t key;
    uint32_t value;
  };

  size_t SlotOf(uint64_t key) const;

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

// The hashes of the states that have been seen. Eight bytes per state, and half of the table is empty at
// worst: a hundred million states take one or two gigabytes. Two states with one hash count as one; among
// n states some such pair exists with a probability of about n^2 / 2^65, 0.03 % for a hundred million.
class HashSet {
 public:
  HashSet();

  // False: it was there already.
  bool Insert(uint64_t hash);
  size_t size() const { return size_; }

 private:
  void Grow();

  std::vector<uint64_t> slots_;  // 0 is empty
  size_t size_ = 0;
};

}  // namespace farside::check::exhaustive
