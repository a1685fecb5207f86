// Which hosts are connected, for the log of a node: a line when a host comes, and one when it has left.
//
// A process opens several connections, one after the other, and a line for each would bury what an operator
// looks for. So a host that is back soon has not left: a visit begins when a host comes that was away for
// kSoon, and its end is worth a line only if it lasted so long.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"

namespace farside::fabric::tcp {

// Safe from any thread.
class HostVisits {
 public:
  static constexpr Nanos kSoon = std::chrono::seconds(10);

  // A connection of this host has come. True: with it a visit begins.
  bool Come(const std::string& host, Nanos now) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(visits_, [now](const auto& visit) { return visit.second.IsOver(now); });
    const auto [found, begins] = visits_.try_emplace(host, Visit{.since = now});
    ++found->second.connections;
    return begins;
  }
  // One of its connections, for which Come was called, has ended. True: with it a visit ends.
  bool Leave(const std::string& host, Nanos now) {
    const std::scoped_lock lock(mutex_);
    const auto found = visits_.find(host);
    Visit& visit = found->second;
    if (--visit.connections > 0) return false;
    visit.away_since = now;
    if (now - visit.since < kSoon) return false;
    visits_.erase(found);
    return true;
  }

 private:
  struct Visit {
    Nanos since;
    Nanos away_since{0};  // if there are no connections
    size_t connections = 0;

    bool IsOver(Nanos now) const { return connections == 0 && now - away_since >= kSoon; }
  };

  std::mutex mutex_;
  std::map<std::string, Visit> visits_;
};

}  // namespace farside::fabric::tcp
