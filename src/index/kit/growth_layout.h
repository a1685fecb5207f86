// The root of a table that grows without a stop, on each of its nodes:
//
//   root      | state | records | zero .. |  directory: 40 offsets of segments  |
//
// Version 1 of a table has segment 0, every later version one segment more. How large a segment is, and what
// stands in it, is the engine's; nothing ever moves to another address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "pool/region/layout.h"

namespace farside::index {

inline constexpr size_t kMostSegments = 40;
inline constexpr uint32_t kMostVersion = kMostSegments;

// Word 0 of the root. Changed by CAS only.
//   63..32                31..14   13..8                  7..2      1..0
//   owner, if preparing   unused   steps, if announced    version   phase
enum class Phase : uint8_t {
  kSteady = 0,     // what the table has is moved up to `version`
  kPreparing = 1,  // the same; the owner is making the next segments
  kAnnounced = 2,  // the same; soon it will be moved up to version + steps
};
class StateWord {
 public:
  using PhaseBits = Field<0, 2>;
  using Version = Field<2, 6>;  // from 1
  using Steps = Field<8, 6>;
  using Unused = Field<14, 18>;
  using OwnerBits = Field<32, 32>;
  static_assert(TilesWord<PhaseBits, Version, Steps, Unused, OwnerBits>());
  static_assert(kMostVersion <= Version::kMax && kMostVersion <= Steps::kMax);

  constexpr StateWord() = default;
  explicit constexpr StateWord(uint64_t word) : word_(word) {}
  static constexpr StateWord Steady(uint32_t version) { return StateWord(Phase::kSteady, version, 0, {}); }
  static constexpr StateWord Preparing(uint32_t version, pool::Owner owner) {
    return StateWord(Phase::kPreparing, version, 0, owner);
  }
  static constexpr StateWord Announced(uint32_t version, uint32_t steps) {
    return StateWord(Phase::kAnnounced, version, steps, {});
  }

  constexpr uint64_t word() const { return word_; }
  constexpr Phase phase() const { return static_cast<Phase>(PhaseBits::Get(word_)); }
  constexpr uint32_t version() const { return static_cast<uint32_t>(Version::Get(word_)); }
  constexpr uint32_t steps() const { return static_cast<uint32_t>(Steps::Get(word_)); }
  constexpr pool::Owner owner() const {
    return pool::Owner::FromBits(static_cast<uint32_t>(OwnerBits::Get(word_)));
  }
  // Whether a correct client may have written it.
  constexpr bool is_sound() const {
    if (version() == 0) return false;
    switch (phase()) {
      case Phase::kSteady: return word_ == Steady(version()).word_;
      case Phase::kPreparing: return word_ == Preparing(version(), owner()).word_;
      case Phase::kAnnounced: return steps() > 0 && word_ == Announced(version(), steps()).word_;
    }
    return false;
  }
  // A larger one is later: it never falls. Preparing changes nothing for other clients.
  constexpr uint32_t Progress() const { return 2 * version() + (phase() == Phase::kAnnounced ? 1 : 0); }

 private:
  constexpr StateWord(Phase phase, uint32_t version, uint32_t steps, pool::Owner owner)
      : word_(PhaseBits::Set(0, static_cast<uint64_t>(phase)) | Version::Set(0, version) |
              Steps::Set(0, steps) | OwnerBits::Set(0, owner.bits())) {}

  uint64_t word_ = 0;
};
static_assert(sizeof(StateWord) == 8);

struct RootLine {
  StateWord state;
  uint64_t records;  // FAA only. As far as clients have reported: dead clients left a few out
  std::array<uint64_t, 6> zero;
};
static_assert(sizeof(RootLine) == pool::kLine);

// What every client READs of a table when it opens it, and when it was resized.
struct Root {
  RootLine line;
  // Offsets as allocated; each is written before its version is announced.
  std::array<uint64_t, kMostSegments> segments;
};
static_assert(sizeof(Root) == 384);
inline constexpr uint64_t kRecordsOffset = offsetof(RootLine, records);
inline constexpr uint64_t kDirectoryOffset = offsetof(Root, segments);
static_assert(kRecordsOffset == 8 && kDirectoryOffset == 64);

}  // namespace farside::index
