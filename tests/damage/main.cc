// Damages pools of every engine, and says what went wrong: ./dev damage.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "store/engines.h"
#include "tests/damage/damaged_pool.h"

namespace farside::damage {
namespace {

struct Sum {
  uint64_t pools = 0;
  uint64_t commands = 0;
  uint64_t refused = 0;
  uint64_t wrong = 0;
  Nanos longest{0};       // of a command, simulated
  Nanos longest_pool{0};  // of all commands of a pool, by the machine's clock

  void Add(const Findings& found, Nanos took) {
    ++pools;
    commands += found.commands;
    refused += found.refused;
    wrong += found.wrong.empty() ? 0 : 1;
    longest = std::max(longest, found.longest);
    longest_pool = std::max(longest_pool, took);
  }
};

double Seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

void Report(std::string_view engine, uint64_t seed, const Findings& found) {
  fmt::print("{} seed {}: {}\n", engine, seed, found.damage);
  for (const std::string& line : found.wrong) fmt::print("  {}\n", line);
}

Sum TryEngine(std::string_view engine, uint64_t first_seed, uint64_t seeds, bool each_seed) {
  const std::vector<DamagedPool> pools = PoolsOf(engine);
  const SteadyClock clock;
  Sum sum;
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    if (each_seed) {
      fmt::print("{} seed {}\n", engine, seed);
      std::fflush(stdout);
    }
    const Nanos began = clock.Now();
    const Findings found = pools[seed % pools.size()].Try(seed);
    sum.Add(found, clock.Now() - began);
    if (!found.wrong.empty()) Report(engine, seed, found);
  }
  fmt::print(
      "{:<10} {} pools, {} commands, {} refused; {} pools with something wrong; longest command {:.2f} s "
      "simulated; longest pool {:.2f} s\n",
      engine, sum.pools, sum.commands, sum.refused, sum.wrong, Seconds(sum.longest),
      Seconds(sum.longest_pool));
  std::fflush(stdout);
  return sum;
}

std::vector<std::string> AllEngines() {
  std::vector<std::string> names;
  for (const store::EngineEntry& engine : store::Engines()) names.emplace_back(engine.name);
  return names;
}

int Main(int argc, char** argv) {
  CLI::App app("Damages pools, and runs commands on them");
  std::vector<std::string> engines = AllEngines();
  uint64_t seeds = 1000;
  uint64_t first_seed = 1;
  bool each_seed = false;
  app.add_option("--engine", engines, "Only these engines")->check(CLI::IsMember(AllEngines()));
  app.add_option("--seeds", seeds, "How many pools of each engine")->capture_default_str();
  app.add_option("--first-seed", first_seed, "The first of them")->capture_default_str();
  app.add_flag("--each-seed", each_seed,
               "Print each seed before its pool is tried: the last one has crashed");
  CLI11_PARSE(app, argc, argv);
  uint64_t wrong = 0;
  for (const std::string& engine : engines) wrong += TryEngine(engine, first_seed, seeds, each_seed).wrong;
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace farside::damage

int main(int argc, char** argv) { return farside::damage::Main(argc, argv); }
