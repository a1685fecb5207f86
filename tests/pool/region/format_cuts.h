// A pool that is made while the power may fail at any moment.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "pool/region/superblock.h"

namespace farside::pool {

inline constexpr RegionId kId = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
inline constexpr RegionId kOtherId = {1, 2};
inline constexpr uint64_t kBytes = 64 * 1024;
inline constexpr size_t kWords = kBytes / 8;

inline Geometry SomeGeometry() { return *PlanGeometry(kBytes, {}); }

inline Status NothingToPersist(uint64_t, uint64_t) { return OkStatus(); }

// A region of kBytes, aligned to a line.
struct Image {
  alignas(kPage) std::array<uint64_t, kWords> words;

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)); }
  Superblock superblock() const {
    Superblock superblock;
    std::memcpy(&superblock, words.data(), sizeof superblock);
    return superblock;
  }
  Result<Superblock> Check() { return CheckSuperblock(bytes().first(kLine), kBytes); }
  friend bool operator==(const Image&, const Image&) = default;
};

inline std::unique_ptr<Image> FreshPool(const RegionId& id = kId) {
  auto image = std::make_unique<Image>();
  (void)Format(image->bytes(), NothingToPersist, SomeGeometry(), id);
  return image;
}

// A region whose stores reach durable memory word by word, in any order, and surely only when persisted.
// Hands what a power cut could leave at each moment to `judge`.
class PowerCuts {
 public:
  using Judge = std::function<void(Image& durable, int step)>;

  PowerCuts(const Image& before, Judge judge)
      : current_(std::make_unique<Image>(before)),
        durable_(std::make_unique<Image>(before)),
        judge_(std::move(judge)) {}

  std::span<std::byte> bytes() { return current_->bytes(); }
  const Image& durable() const { return *durable_; }
  int steps() const { return step_; }

  Status Persist(uint64_t offset, uint64_t size) {
    CutPower();
    std::memcpy(durable_->bytes().data() + offset, current_->bytes().data() + offset, size);
    ++step_;
    CutPower();
    return OkStatus();
  }

 private:
  static constexpr size_t kAllSubsetsUpTo = 10;
  static constexpr int kRandomSubsets = 2000;

  // Any of the words that were stored to and not persisted may have arrived.
  void CutPower() {
    std::vector<size_t> pending;
    for (size_t word = 0; word < kWords; ++word) {
      if (current_->words[word] != durable_->words[word]) pending.push_back(word);
    }
    if (pending.size() <= kAllSubsetsUpTo) {
      for (size_t subset = 0; subset < size_t{1} << pending.size(); ++subset) {
        CutPower(pending, [subset](size_t i) { return (subset >> i & 1) != 0; });
      }
      return;
    }
    CutPower(pending, [](size_t) { return false; });
    CutPower(pending, [](size_t) { return true; });
    // The words of the superblock are few: each of them alone, and all but each.
    for (size_t one = 0; one < kLine / 8; ++one) {
      CutPower(pending, [one](size_t i) { return i == one; });
      CutPower(pending, [one](size_t i) { return i != one; });
    }
    for (int i = 0; i < kRandomSubsets; ++i) {
      const uint64_t chance = random_.Below(101);
      CutPower(pending, [this, chance](size_t) { return random_.Below(100) < chance; });
    }
  }

  template <class Arrived>
  void CutPower(const std::vector<size_t>& pending, Arrived arrived) {
    *after_ = *durable_;
    for (size_t i = 0; i < pending.size(); ++i) {
      if (arrived(i)) after_->words[pending[i]] = current_->words[pending[i]];
    }
    judge_(*after_, step_);
  }

  std::unique_ptr<Image> current_;
  std::unique_ptr<Image> durable_;
  std::unique_ptr<Image> after_ = std::make_unique<Image>();
  Judge judge_;
  int step_ = 0;
  Random random_{0xc07};
};

// Formats `before`. Every power cut must leave no pool, or all of the new one, or `before` as it was. What is
// wrong, or empty.
inline std::string FormatUnderPowerCuts(const Image& before, bool was_a_pool) {
  const Geometry geometry = SomeGeometry();
  std::string problem;
  uint64_t cuts = 0;
  uint64_t new_pools = 0;
  const auto complain = [&](std::string_view what, int step) {
    if (problem.empty()) problem = fmt::format("cut in step {}: {}", step, what);
  };
  const auto judge = [&](Image& durable, int step) {
    ++cuts;
    const Result<Superblock> superblock = durable.Check();
    if (!superblock.ok()) {
      if (superblock.error().message() != "not a Farside pool") complain(superblock.error().message(), step);
      return;
    }
    if (superblock->region_id != kId) {
      if (!was_a_pool || durable != before) complain("the old pool is not whole", step);
      return;
    }
    ++new_pools;
    const auto rest = durable.bytes().subspan(kLine, geometry.first_chunk() - kLine);
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (!std::ranges::all_of(rest, is_zero)) complain("the new pool is not empty", step);
  };
  PowerCuts memory(before, judge);
  const auto persist = [&memory](uint64_t offset, uint64_t size) { return memory.Persist(offset, size); };
  if (!Format(memory.bytes(), persist, geometry, kId).ok()) return "it was not made";
  // Everything is durable at the end. There are new pools by luck and by persisting.
  Image durable = memory.durable();
  if (!durable.Check().ok() || durable.Check()->region_id != kId)
    complain("there is no pool", memory.steps());
  if (memory.steps() != 4 || cuts < 128 || new_pools < 2) complain("there were too few cuts", memory.steps());
  return problem;
}

// A pool with something in every area.
inline Image UsedPool() {
  Image old = *FreshPool(kOtherId);
  Random random(2);
  for (size_t word = kLine / 8; word < kWords; ++word) old.words[word] = random.Next();
  return old;
}

}  // namespace farside::pool
