// Keeps the clients of a benchmark alive while they have nothing to do: while others still join, or one of them counts
// memory. With many clients, or a large table, that may take longer than a lease, and whoever gives no sign of life for
// so long is taken for dead.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/bench/client.h"

namespace farside::tools {

class BenchKeeper {
 public:
  BenchKeeper() : thread_([this] { Run(); }) {}
  BenchKeeper(const BenchKeeper&) = delete;
  BenchKeeper& operator=(const BenchKeeper&) = delete;
  // Then the clients may be used again.
  ~BenchKeeper();

  // Nobody else may use the client from now on. It outlives this.
  void Add(BenchClient& client);

 private:
  void Run();

  std::mutex mutex_;  // of what follows, and held while a client is used
  std::condition_variable wake_;
  std::vector<BenchClient*> clients_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace farside::tools
