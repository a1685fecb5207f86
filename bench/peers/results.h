// What was measured, and where: plain data that reports are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/peers/batch.h"
#include "bench/peers/measure.h"

namespace farside::peers {

// The middle one; of an even number, the mean of the two in the middle. 0 if there is none.
double Median(std::vector<double> values);

// The runs of a system in one cell.
struct Entry {
  size_t system = 0;   // of Results::systems
  std::string manner;  // how it was asked; empty if there is only one way
  std::vector<Figures> rounds;

  // Each figure's median over the rounds, apart from the others.
  Figures Middle() const;
  // Of the throughput.
  double Slowest() const;
  double Fastest() const;
};

// One combination of what is done, by how many, how many at a time; all systems in it were run in turns.
struct Cell {
  Operation operation = Operation::kGet;
  size_t clients = 1;
  size_t depth = 1;
  std::vector<Entry> entries;
};

struct Setting {
  std::string processor;
  unsigned cores = 0;
  uint64_t memory_bytes = 0;
  std::string kernel;
  std::string commit;  // of this program
  uint64_t records = 0;
  size_t value_size = 0;
  size_t rounds = 0;
  double seconds = 0;  // of a run
  // What processes that have nothing to do with this took meanwhile, of all processors; absent if unknown.
  std::optional<double> taken_by_others;
};

struct SystemInfo {
  std::string name;
  std::string version;  // empty: that of this program
};

struct Results {
  Setting setting;
  std::vector<SystemInfo> systems;
  std::optional<size_t> base;  // the system that others are compared with
  std::vector<Cell> cells;
};

// How many times as fast as `entry` the base was in this cell; absent if there is no base, or nothing was
// measured.
std::optional<double> BaseAgainst(const Results& results, const Cell& cell, const Entry& entry);

// What the kernel says about this machine, and the commit of this program.
Setting ReadSetting();

}  // namespace farside::peers
