// How many clients a server has, in all and of each address. One address cannot take the room of all clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "farside/result.h"

namespace farside::fabric::tcp {

// Safe from any thread. A network is what SocketAddress::Network says.
class ClientLimits {
 public:
  ClientLimits(size_t most, size_t most_of_address) : most_(most), most_of_address_(most_of_address) {}

  // Counts a client, unless there are as many as may be; then the error says so to the client.
  Status Come(uint64_t network);
  // A client that Come has counted is gone.
  void Leave(uint64_t network);

 private:
  const size_t most_;
  const size_t most_of_address_;
  std::mutex mutex_;  // of what follows
  size_t clients_ = 0;
  std::unordered_map<uint64_t, size_t> of_network_;
};

}  // namespace farside::fabric::tcp
