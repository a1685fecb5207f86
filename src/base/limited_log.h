// A logger for lines that peers can cause as often as they like. It writes kBurst of them, and then one in
// each kInterval; it counts the others, and reports how many they were, once in kReportEvery and at the end.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/clock.h"
#include "base/log.h"

namespace farside {

// Safe from any thread.
class LimitedLog {
 public:
  static constexpr int kBurst = 100;
  static constexpr Nanos kInterval = std::chrono::milliseconds(100);
  static constexpr Nanos kReportEvery = std::chrono::seconds(10);

  // `subject` says what the lines are about: "tcp: of strangers". The logger must outlive this.
  LimitedLog(Logger& log, std::string subject) : log_(log), subject_(std::move(subject)) {}

  template <class... Args>
  void Info(Nanos now, fmt::format_string<Args...> format, Args&&... args) {
    if (Allows(LogLevel::kInfo, now)) log_.Info(format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void Warn(Nanos now, fmt::format_string<Args...> format, Args&&... args) {
    if (Allows(LogLevel::kWarn, now)) log_.Warn(format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void Error(Nanos now, fmt::format_string<Args...> format, Args&&... args) {
    if (Allows(LogLevel::kError, now)) log_.Error(format, std::forward<Args>(args)...);
  }

  // Whether lines were left out that no line has reported yet.
  bool HasLeftOut() const { return left_out_.load(std::memory_order_relaxed) != 0; }
  // Reports how many lines were left out, if there were some and the last report is kReportEvery ago.
  void ReportLeftOut(Nanos now) {
    const std::scoped_lock lock(mutex_);
    if (now - reported_at_ >= kReportEvery) ReportLocked(now);
  }
  // At the end of the server: does not wait for kReportEvery.
  void ReportTheRest(Nanos now) {
    const std::scoped_lock lock(mutex_);
    ReportLocked(now);
  }

 private:
  bool Allows(LogLevel level, Nanos now) {
    if (!log_.Enabled(level)) return false;
    const std::scoped_lock lock(mutex_);
    const Nanos begins = std::max(booked_until_, now);
    if (begins - now > (kBurst - 1) * kInterval) {
      if (left_out_.fetch_add(1) == 0) reported_at_ = now;
      return false;
    }
    booked_until_ = begins + kInterval;
    return true;
  }
  void ReportLocked(Nanos now) {
    if (left_out_ == 0) return;
    log_.Warn("{}: {} lines like these were left out", subject_, left_out_.exchange(0));
    reported_at_ = now;
  }

  Logger& log_;
  const std::string subject_;
  std::mutex mutex_;  // of what follows; HasLeftOut need not be exact
  // Each line books one interval: the first that is free. At most kBurst intervals are booked ahead of time.
  Nanos booked_until_{0};
  std::atomic<uint64_t> left_out_{0};  // since the last report
  Nanos reported_at_{0};               // the last report, or the first line that was left out after it
};

}  // namespace farside
