// Which hosts are connected, for the log of a node: a line when a host comes, and one when it has left.
//
// A process opens several connections, one after the other, and a line for each would bury what an operator
// looks for. So a host that is back soon has not left: a visit begins when a host comes that was away for
// kSoon, and its end is worth a line only if it lasted so long.
//
// Of hosts that are away, the last kMostAway are remembered; one that is back after so many others begins
// another visit. So there are no more than that and one for each client, and no call looks at all of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"

namespace farside::fabric::tcp {

// Safe from any thread.
class HostVisits {
 public:
  static constexpr Nanos kSoon = std::chrono::seconds(10);
  static constexpr size_t kMostAway = 4096;

  // A connection of this host has come. True: with it a visit begins.
  bool Come(const std::string& host, Nanos now) {
    const std::scoped_lock lock(mutex_);
    while (!away_.empty() && now - away_.begin()->first >= kSoon) ForgetLongestAway();
    const auto [found, begins] = visits_.try_emplace(host, Visit{.since = now});
    Visit& visit = found->second;
    if (visit.connections++ == 0 && !begins) away_.erase({visit.away_since, host});
    return begins;
  }
  // One of its connections, for which Come was called, has ended. True: with it a visit ends.
  bool Leave(const std::string& host, Nanos now) {
    const std::scoped_lock lock(mutex_);
    const auto found = visits_.find(host);
    Visit& visit = found->second;
    if (--visit.connections > 0) return false;
    if (now - visit.since >= kSoon) {
      visits_.erase(found);
      return true;
    }
    visit.away_since = now;
    away_.emplace(now, host);
    if (away_.size() > kMostAway) ForgetLongestAway();
    return false;
  }

  // Hosts that are remembered.
  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return visits_.size();
  }

 private:
  struct Visit {
    Nanos since;
    Nanos away_since{0};  // if there are no connections
    size_t connections = 0;
  };

  void ForgetLongestAway() {
    visits_.erase(away_.begin()->second);
    away_.erase(away_.begin());
  }

  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, Visit> visits_;
  std::set<std::pair<Nanos, std::string>> away_;  // hosts without connections, since when
};

}  // namespace farside::fabric::tcp
