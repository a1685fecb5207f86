// A phase of a benchmark (load, warm-up, run): what its clients share, and what they have counted.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "fabric/counters.h"
#include "farside/result.h"
#include "workload/frontier.h"
#include "workload/generator.h"

namespace farside::tools {

// What a client did in a phase, or all of them.
struct BenchTally {
  std::array<Histogram, workload::kActions> latency;  // in ns
  fabric::Counters counters;
  uint64_t operations = 0;
  uint64_t scanned = 0;       // records that scans returned
  uint64_t errors = 0;        // wrong or missing values, and operations that failed
  std::string first_problem;  // the first of the errors; empty if there are none
  Nanos began{0};
  Nanos ended{0};
  // If the phase has windows: operations that ended in each, from the begin on; and when a client first knew
  // of each step of the table's growth (Index::growth), counted from the begin too.
  std::vector<uint64_t> windows;
  std::map<uint64_t, Nanos> growth;

  void Add(const BenchTally& other);
  double seconds() const { return std::chrono::duration<double>(ended - began).count(); }
};

// What all clients of a phase share.
class BenchPhase {
 public:
  struct Options {
    workload::Shape shape;
    uint64_t clients = 1;
    uint64_t workers = std::numeric_limits<uint64_t>::max();  // how many of them operate, at most
    uint64_t operations = 0;                                  // over all clients
    std::optional<Nanos> duration;                            // instead
    uint64_t value_size = 8;
    uint64_t key_size = 8;
    bool verify = true;
    Nanos window{0};      // 0: the tally has no windows
    bool puts = false;    // new records are put, not inserted
    uint64_t stream = 0;  // phases of one seed draw different numbers
  };

  // The frontier outlives the phase, since records that were inserted stay.
  BenchPhase(const Options& options, workload::Frontier& frontier)
      : options_(options),
        frontier_(frontier),
        portion_(
            std::clamp<uint64_t>(options.operations / (options.clients * kPortions), 1, kLargestPortion)),
        busy_(options.clients) {}

  const Options& options() const { return options_; }
  workload::Frontier& frontier() { return frontier_; }
  // ---- for the threads of the clients
  // Operations are handed out a few at a time to the next client that is ready, so that all clients end
  // together and the slowest does not decide how fast the others were. Returns how many; `first` is the
  // number of the first.
  uint64_t Take(uint64_t& first);
  void Count(uint64_t operations) { done_.fetch_add(operations, std::memory_order_relaxed); }
  // No client begins another operation.
  void Fail(const Error& error);
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // A client has nothing left to do.
  void Leave() { busy_.fetch_sub(1, std::memory_order_acq_rel); }
  bool over() const { return busy_.load(std::memory_order_acquire) == 0; }

  // ---- for the world that runs it
  uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  // When all clients have ended.
  const std::optional<Error>& error() const { return error_; }

 private:
  static constexpr uint64_t kPortions = 64;  // of each client, on average
  static constexpr uint64_t kLargestPortion = 64;

  const Options options_;
  workload::Frontier& frontier_;
  const uint64_t portion_;
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> busy_;
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::optional<Error> error_;  // the first
};

}  // namespace farside::tools
