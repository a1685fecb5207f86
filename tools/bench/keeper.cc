#include "tools/bench/keeper.h"

#include <chrono>

#include "fabric/run.h"

namespace farside::tools {
namespace {

constexpr auto kPause = std::chrono::seconds(1);  // some ten in a lease

}  // namespace

BenchKeeper::~BenchKeeper() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void BenchKeeper::Add(BenchClient& client) {
  const std::scoped_lock lock(mutex_);
  clients_.push_back(&client);
}

void BenchKeeper::Run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPause, [this] { return closing_; })) {
    for (size_t i = 0; i < clients_.size() && !closing_; ++i) {
      // Who cannot is told so by its next operation.
      BenchClient& client = *clients_[i];
      static_cast<void>(fabric::Run(client.client(), client.GiveSignOfLife()));
      lock.unlock();  // for those who add
      lock.lock();
    }
  }
}

}  // namespace farside::tools
