// A client of a benchmark: one session, with a number of operations in flight that never goes down.
//
// It is the same code on every fabric: workers are coroutines, and whoever drives the fabric resumes them. Each worker
// performs one operation after the other, so `depth` workers keep `depth` operations in flight.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "fabric/client.h"
#include "fabric/counters.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/tables.h"
#include "store/session.h"
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
  // If the phase has windows: operations that ended in each, from the begin on; and when somebody first knew of each
  // step of the table's growth (Index::growth), counted from the begin too.
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
    Nanos window{0};      // 0: nobody wants to know when operations ended
    uint64_t stream = 0;  // phases of one seed draw different numbers
    // Between two signs of life of a client that waits for the others.
    Nanos idle_pause = std::chrono::milliseconds(1);
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
  // ---- from the threads of the clients
  // Operations are handed out a few at a time to whoever is ready, so that all clients come to an end together and the
  // slowest does not decide how fast the others were. Returns how many; `first` is the number of the first.
  uint64_t Take(uint64_t& first);
  void Count(uint64_t operations) { done_.fetch_add(operations, std::memory_order_relaxed); }
  // Nobody begins another operation.
  void Fail(const Error& error);
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // A client has nothing left to do.
  void Leave() { busy_.fetch_sub(1, std::memory_order_acq_rel); }
  bool over() const { return busy_.load(std::memory_order_acquire) == 0; }

  // ---- for whoever drives it
  uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  // When all clients have come to an end.
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

class BenchClient {
 public:
  BenchClient(uint64_t number, std::unique_ptr<fabric::Client> client, pool::ClientOptions options = {});
  BenchClient(const BenchClient&) = delete;
  BenchClient& operator=(const BenchClient&) = delete;
  ~BenchClient();

  // Joins the pool, and makes the table or opens it. True: it was made.
  Task<bool> Join(index::FindEngine find_engine, std::string table, std::string engine,
                  index::OptionMap options);

  // Leaves the pool, and drops the table first if `drop`. Nothing else may be done with the client afterwards.
  Task<Done> Leave(bool drop);
  // For a client that has nothing else to do. Others take whoever is silent for long for dead.
  Task<Done> GiveSignOfLife();

  // Starts the workers of a phase, which last until all clients are done. Drive the fabric until they
  // have ended. The phase must outlive them.
  void Start(BenchPhase& phase, uint32_t depth);
  bool done() const;
  // Of the phase that has ended.
  const BenchTally& tally() const { return tally_; }

  fabric::Client& client() { return *client_; }
  store::Session& session() { return *session_; }
  index::Index& index() { return *table_->index; }

 private:
  struct Buffers {
    std::string key;
    std::string value;
    std::string read;
    KeyRange range;
    std::vector<Record> page;
  };

  Task<Done> Worker();
  Task<Done> Perform(workload::Request request, Buffers& buffers);
  Task<Done> Read(Buffers& buffers);
  Task<Done> Scan(uint32_t length, Buffers& buffers);
  // What is wrong with the page that a scan returned; empty if nothing is.
  std::string ProblemOf(const Buffers& buffers, uint32_t length) const;
  Task<Done> Insert(uint64_t record, Buffers& buffers);
  Task<bool> InsertUncontended(Buffers& buffers);
  Task<Done> Update(Buffers& buffers);
  Task<Done> Maintain();
  // Keeps the client alive, and out of the way of the others, until all of them are done.
  Task<Done> WaitForOthers();
  std::optional<workload::Request> NextRequest(Nanos now);
  void FillNewValue(Buffers& buffers);
  void CountInWindow(Nanos end);
  void CountError(std::string what);
  // True if the run goes on without this operation.
  bool Survives(const Error& error, const char* what);

  const uint64_t number_;
  const std::unique_ptr<fabric::Client> client_;
  const pool::ClientOptions options_;
  std::unique_ptr<store::Session> session_;
  std::optional<index::OpenTable> table_;

  // ---- of the current phase
  BenchPhase* phase_ = nullptr;
  std::optional<workload::Generator> generator_;
  BenchTally tally_;
  uint64_t next_ = 0;  // number of the operation that it issues next, if any are left
  uint64_t left_ = 0;
  Nanos deadline_{0};
  uint32_t working_ = 0;  // workers that have not done their part
  bool maintaining_ = false;
  uint32_t versions_ = 0;     // values written so far
  uint64_t growth_seen_ = 0;  // of the table, at the last look
  std::vector<Task<Done>> workers_;
};

}  // namespace farside::tools
