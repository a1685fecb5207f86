// A state of the world, as flat bytes: it is copied and hashed for every step of the search.
//
//   StateHeader | ActorState of each client | region | Orphan ...
//
// Orphans are trips in flight that no client waits for any more: detached ones, and those of clients that
// died or lost the connection. They stand in the order of the clients, and then in that of posting.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/hash.h"
#include "fabric/address.h"

namespace farside::check::exhaustive {

// Windows are bits of a word: kMostWindows for each of kMostActors.
using Windows = uint64_t;

struct StateHeader {
  uint32_t history = 0;  // see Monitor
  uint16_t orphans = 0;
  uint16_t begun = 0;  // 0: these bytes were never a state
  uint64_t touched =
      0;  // parts of the region that were ever written to; the others are as they were at first
};

struct ActorState {
  static constexpr uint8_t kDead = 1;
  static constexpr uint8_t kEnded = 2;

  uint32_t node = 0;        // see ObservationTree
  uint32_t answers = 0;     // the observation that the trip in flight makes; 0: nothing so far
  uint64_t done = 0;        // the pieces of that trip that have taken effect
  Windows stepped_in = 0;   // open windows of others in which this trip has taken a step
  Windows barred_from = 0;  // open windows in which an earlier trip did: their end must be waited for
  uint32_t marks_done = 0;  // of the node
  uint8_t fate = 0;
  uint8_t lost = 0;    // connections, as bits
  uint8_t fenced = 0;  // connections, as bits
  uint8_t unused = 0;

  bool dead() const { return fate == kDead; }
  bool ended() const { return fate == kEnded; }
};

struct Orphan {
  uint32_t request = 0;
  uint32_t unused = 0;
  uint64_t done = 0;
  Windows barred_from = 0;
};

static_assert(std::has_unique_object_representations_v<StateHeader>);
static_assert(std::has_unique_object_representations_v<ActorState>);
static_assert(std::has_unique_object_representations_v<Orphan>);

inline constexpr size_t kMostOrphans = 8;

class StateLayout {
 public:
  StateLayout(size_t actors, uint64_t region_bytes)
      : actors_(actors),
        region_bytes_(region_bytes),
        orphans_at_(sizeof(StateHeader) + actors * sizeof(ActorState) + (region_bytes + 7) / 8 * 8) {}

  size_t actors() const { return actors_; }
  uint64_t region_bytes() const { return region_bytes_; }
  // The region in at most 64 parts.
  uint64_t part_bytes() const { return (region_bytes_ / 64 / fabric::kLineBytes + 1) * fabric::kLineBytes; }
  size_t region_at() const { return sizeof(StateHeader) + actors_ * sizeof(ActorState); }
  size_t orphans_at() const { return orphans_at_; }
  size_t capacity() const { return orphans_at_ + kMostOrphans * sizeof(Orphan); }

 private:
  size_t actors_;
  uint64_t region_bytes_;
  size_t orphans_at_;
};

// A view of the bytes of a state, which stand aligned to 8.
class State {
 public:
  State(const StateLayout& layout, std::byte* base) : layout_(&layout), base_(base) {}

  StateHeader& header() const { return *reinterpret_cast<StateHeader*>(base_); }
  ActorState& actor(size_t i) const { return actors()[i]; }
  std::span<ActorState> actors() const {
    return {reinterpret_cast<ActorState*>(base_ + sizeof(StateHeader)), layout_->actors()};
  }
  std::span<std::byte> region() const { return {base_ + layout_->region_at(), layout_->region_bytes()}; }
  std::span<Orphan> orphans() const {
    return {reinterpret_cast<Orphan*>(base_ + layout_->orphans_at()), header().orphans};
  }

  // There must be room, see kMostOrphans.
  void InsertOrphan(size_t at, const Orphan& orphan) const {
    assert(header().orphans < kMostOrphans);
    ++header().orphans;
    const std::span<Orphan> all = orphans();
    for (size_t i = all.size() - 1; i > at; --i) all[i] = all[i - 1];
    all[at] = orphan;
  }
  void RemoveOrphan(size_t at) const {
    const std::span<Orphan> all = orphans();
    for (size_t i = at; i + 1 < all.size(); ++i) all[i] = all[i + 1];
    --header().orphans;
  }

  // Code that writes to the region says where.
  void Touch(uint64_t offset, uint64_t bytes) const {
    for (uint64_t part = offset / layout_->part_bytes(); part * layout_->part_bytes() < offset + bytes;
         ++part) {
      header().touched |= uint64_t{1} << part;
    }
  }

  // What was never touched is the same in all states, so it is neither copied nor hashed: the region is far
  // larger than the rest.
  void CopyFrom(State other) const {
    if (header().begun == 0) {
      std::memcpy(base_, other.base_, other.Bytes());
      return;
    }
    const uint64_t touched = header().touched | other.header().touched;
    std::memcpy(base_, other.base_, layout_->region_at());
    for (uint64_t left = touched; left != 0; left &= left - 1) {
      const std::span<const std::byte> part = other.Part(std::countr_zero(left));
      std::memcpy(Part(std::countr_zero(left)).data(), part.data(), part.size());
    }
    std::memcpy(orphans().data(), other.orphans().data(), other.orphans().size_bytes());
  }
  uint64_t Hash() const {
    uint64_t hash = Hash64(std::span<const std::byte>(base_, layout_->region_at()));
    for (uint64_t left = header().touched; left != 0; left &= left - 1) {
      hash = Hash64(Part(std::countr_zero(left)), hash);
    }
    return Hash64(std::as_bytes(orphans()), hash);
  }

 private:
  std::span<std::byte> Part(int number) const {
    const uint64_t at = layout_->part_bytes() * static_cast<uint64_t>(number);
    return region().subspan(at, std::min(layout_->part_bytes(), layout_->region_bytes() - at));
  }
  size_t Bytes() const { return layout_->orphans_at() + header().orphans * sizeof(Orphan); }

  const StateLayout* layout_;
  std::byte* base_;
};

}  // namespace farside::check::exhaustive
