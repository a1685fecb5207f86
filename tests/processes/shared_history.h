// What several processes asked of a table and what they were told, in memory that they share: so it outlives
// those that are killed, in the middle of an operation too.
//
// Every begin and every end of an operation takes the next number of one counter. A number that is taken
// before an operation starts, and one that is taken after it has ended, order operations as the real time
// does.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "check/history.h"

namespace farside::processes {

inline constexpr size_t kMostWorkers = 16;
inline constexpr size_t kMostEntries = 20'000;  // of a worker

// A short text without pointers.
class Text {
 public:
  void operator=(std::string_view text) {
    assert(text.size() <= bytes_.size());
    size_ = static_cast<uint8_t>(text.size());
    std::memcpy(bytes_.data(), text.data(), text.size());
  }
  std::string str() const { return std::string(bytes_.data(), size_); }

 private:
  uint8_t size_ = 0;
  std::array<char, 31> bytes_{};
};

struct Entry {
  check::Kind kind;
  check::Fate fate;
  bool flag;  // of the outcome: found or applied
  Text key;
  Text value;       // of the call
  Text expected;    // of the call
  Text answer;      // what a Get has found
  uint64_t number;  // of a counter: what to add, and what it became
  uint64_t invoked;
  uint64_t returned;
};

struct Log {
  std::atomic<uint64_t> entries{0};  // begun; the last may be without an end
  std::atomic<uint64_t> answered{0};
  std::atomic<uint64_t> refused{0};
  std::array<Entry, kMostEntries> all;
};

class SharedHistory {
 public:
  SharedHistory() {
    void* const shared = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert(shared != MAP_FAILED);
    shared_ = new (shared) Shared();
  }
  SharedHistory(const SharedHistory&) = delete;
  SharedHistory& operator=(const SharedHistory&) = delete;
  ~SharedHistory() { ::munmap(shared_, sizeof(Shared)); }

  Log& log(size_t worker) { return shared_->logs[worker]; }
  uint64_t NextEvent() { return shared_->events.fetch_add(1); }
  std::atomic<bool>& stop() { return shared_->stop; }

  // Clients that are being written to must have ended, or died.
  std::vector<check::Operation> Operations() {
    std::vector<check::Operation> all;
    for (size_t worker = 0; worker < kMostWorkers; ++worker) {
      const Log& from = log(worker);
      for (uint64_t i = 0; i < from.entries.load(); ++i) all.push_back(ToOperation(worker, from.all[i]));
    }
    return all;
  }

 private:
  struct Shared {
    std::atomic<uint64_t> events{0};
    std::atomic<bool> stop{false};
    std::array<Log, kMostWorkers> logs;
  };

  static check::Operation ToOperation(size_t worker, const Entry& entry) {
    check::Operation operation;
    operation.client = static_cast<int>(worker);
    operation.kind = entry.kind;
    operation.fate = entry.fate;
    operation.key = entry.key.str();
    operation.value = entry.value.str();
    operation.expected = entry.expected.str();
    operation.delta = entry.kind == check::Kind::kIncrement ? 1 : 0;
    operation.invoked = entry.invoked;
    operation.returned = operation.maybe() ? check::kNever : entry.returned;
    if (entry.fate == check::Fate::kAnswered) operation.outcome = OutcomeOf(entry);
    return operation;
  }
  static check::Outcome OutcomeOf(const Entry& entry) {
    switch (entry.kind) {
      case check::Kind::kGet:
        return check::Found{entry.flag ? std::optional(entry.answer.str()) : std::nullopt};
      case check::Kind::kPut: return check::Stored{};
      case check::Kind::kIncrement: return check::Counted{entry.number};
      default: return check::Applied{entry.flag};
    }
  }

  Shared* shared_;
};

}  // namespace farside::processes
