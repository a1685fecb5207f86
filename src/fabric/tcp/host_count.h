// How many connections each host has. The log of a node has a line for the first connection of a host and one
// for the end of its last: a process opens several, and a line for each would bury what an operator looks for.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace farside::fabric::tcp {

// Safe from any thread.
class HostCount {
 public:
  // True: it is the only connection of this host now.
  bool Add(const std::string& host) {
    const std::scoped_lock lock(mutex_);
    return ++connections_[host] == 1;
  }
  // True: the host has none left. It must have been added.
  bool Remove(const std::string& host) {
    const std::scoped_lock lock(mutex_);
    const auto found = connections_.find(host);
    if (--found->second > 0) return false;
    connections_.erase(found);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, size_t> connections_;
};

}  // namespace farside::fabric::tcp
