// What an attacker does to a node from outside, over sockets of its own. Each attack would lock clients out
// or make them wait if the node had no limit against it (docs/security.md, "Floods").
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace farside::floods {

// By one thread.
class Attacker {
 public:
  virtual ~Attacker() = default;
  // Goes on for a moment.
  virtual void Step() = 0;
  // Hangs up on the node.
  virtual void Stop() = 0;
  // How much it did: connections, or bytes that it sent.
  uint64_t connections() const { return connections_; }
  uint64_t bytes() const { return bytes_; }

 protected:
  uint64_t connections_ = 0;
  uint64_t bytes_ = 0;
};

struct Attack {
  std::string_view name;
  std::string_view what;
  std::unique_ptr<Attacker> (*make)(uint16_t port);
  size_t sockets;               // of an attacker, that a node keeps at most
  size_t threads = 1;           // attackers, each with a thread of its own
  bool log_is_stalled = false;  // the log of its node is a pipe that is full
};

const std::vector<Attack>& Attacks();

}  // namespace farside::floods
