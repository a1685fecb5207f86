// A whole benchmark: every system in every cell, in turns.
//
// In each cell, every manner of every system is tried for a moment, and the fastest one of each is kept. Then
// all systems warm up, and run one after the other, round by round, each round beginning with another one:
// whatever else the machine does meets all of them alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/peers/interrupt.h"
#include "bench/peers/results.h"
#include "bench/peers/system.h"
#include "farside/result.h"

namespace farside::peers {

struct CampaignOptions {
  uint64_t records = 1'000'000;
  size_t value_size = 64;
  std::vector<size_t> clients = {1, 4};
  std::vector<size_t> depths = {1, 32, 64};
  size_t rounds = 5;
  double seconds = 0.5;  // of a run
  uint64_t seed = 1;
};

// Told before each step what is next, and how many of all have been done.
using Progress = std::function<void(std::string_view what, uint64_t done, uint64_t total)>;

Result<Results> RunCampaign(const std::vector<std::unique_ptr<System>>& systems,
                            const CampaignOptions& options, Interrupt& interrupt, const Progress& progress);

}  // namespace farside::peers
