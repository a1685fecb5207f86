// A process that uses a pool like any program would, and writes down what it does.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "farside/farside.h"
#include "tests/processes/shared_history.h"

namespace farside::processes {

inline constexpr std::string_view kTable = "shared";
inline constexpr uint64_t kKeys = 6;
inline constexpr uint64_t kCounters = 2;

// Performs random operations on a few keys, so that workers meet, until it has `operations` answers or is
// told to stop. An error says what should not happen.
inline std::optional<std::string> Work(SharedHistory& history, size_t worker, Session& session,
                                       const Table& table, uint64_t operations, Random random) {
  Log& log = history.log(worker);
  std::string last;  // what it has read last, to compare with
  while (log.answered.load() < operations && !history.stop().load()) {
    const uint64_t place = log.entries.load();
    if (place == kMostEntries) return "its log is full";
    Entry& entry = log.all[place];
    entry = Entry{};
    const bool counts = random.Chance(1, 8);
    const std::string key = counts ? "counter-" + std::to_string(random.Below(kCounters))
                                   : "key-" + std::to_string(random.Below(kKeys));
    const std::string value = std::to_string(worker) + "." + std::to_string(place);
    constexpr std::array kKinds = {check::Kind::kGet,    check::Kind::kGet,          check::Kind::kPut,
                                   check::Kind::kPut,    check::Kind::kInsert,       check::Kind::kUpdate,
                                   check::Kind::kDelete, check::Kind::kCompareAndSet};
    entry.kind = counts ? check::Kind::kIncrement : kKinds[random.Below(kKinds.size())];
    entry.key = key;
    entry.value = value;
    entry.expected = last;
    entry.invoked = history.NextEvent();
    log.entries.store(place + 1);  // from here on it may have happened

    std::optional<Error> error;
    const auto applied = [&](const Result<bool>& result) {
      if (!result.ok()) error = result.error();
      entry.flag = result.ok() && *result;
    };
    switch (entry.kind) {
      case check::Kind::kGet: {
        const Result<std::optional<std::string>> got = session.Get(table, key);
        if (!got.ok()) error = got.error();
        entry.flag = got.ok() && got->has_value();
        if (entry.flag) {
          last = **got;
          entry.answer = last;
        }
        break;
      }
      case check::Kind::kPut: {
        const Status put = session.Put(table, key, value);
        if (!put.ok()) error = put.error();
        break;
      }
      case check::Kind::kInsert: applied(session.Insert(table, key, value)); break;
      case check::Kind::kUpdate: applied(session.Update(table, key, value)); break;
      case check::Kind::kDelete: applied(session.Delete(table, key)); break;
      case check::Kind::kCompareAndSet: applied(session.CompareAndSet(table, key, last, value)); break;
      case check::Kind::kIncrement: {
        const Result<uint64_t> now = session.Increment(table, key);
        if (!now.ok()) error = now.error();
        if (now.ok()) entry.number = *now;
        break;
      }
      case check::Kind::kScan:
      case check::Kind::kLast:
      case check::Kind::kSeen: break;  // of one key each
    }
    entry.returned = history.NextEvent();
    if (!error.has_value()) {
      entry.fate = check::Fate::kAnswered;
      log.answered.fetch_add(1);
      continue;
    }
    switch (error->code()) {
      case ErrorCode::kOutcomeUnknown: entry.fate = check::Fate::kMaybe; break;
      case ErrorCode::kFenced:
      case ErrorCode::kUnavailable:
      case ErrorCode::kContended: entry.fate = check::Fate::kRefused; break;
      default: return error->ToString();
    }
    log.refused.fetch_add(1);
  }
  return std::nullopt;
}

// A child process that runs `body` and ends with its exit code. Made before this process has threads.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(body());
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)), status_(other.status_) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ <= 0 || status_.has_value()) return;
    Signal(SIGKILL);
    Wait();
  }

  void Signal(int signal) const { ::kill(pid_, signal); }
  // The exit code, or minus the signal that ended it.
  int Wait() {
    if (status_.has_value()) return *status_;
    int raw = 0;
    while (::waitpid(pid_, &raw, 0) < 0 && errno == EINTR) continue;
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : -WTERMSIG(raw);
    return *status_;
  }

 private:
  pid_t pid_;
  std::optional<int> status_;
};

// How a parent tells its children where the pool is, when there is one.
class UrlPipe {
 public:
  UrlPipe() {
    if (::pipe(ends_.data()) != 0) std::abort();
  }
  UrlPipe(const UrlPipe&) = delete;
  UrlPipe& operator=(const UrlPipe&) = delete;
  ~UrlPipe() {
    for (const int end : ends_) ::close(end);
  }

  void Tell(const std::string& url) const {
    const std::string line = url + "\n";
    if (::write(ends_[1], line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  }
  // The next line. Each is for one reader.
  std::string Read() const {
    std::string line;
    char byte = 0;
    while (::read(ends_[0], &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }

 private:
  std::array<int, 2> ends_{};
};

}  // namespace farside::processes
