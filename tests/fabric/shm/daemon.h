// A daemon of the shm fabric in the test's own process, and what tests do with its clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/shm/server.h"
#include "fabric/shm/shared_memory.h"
#include "fabric/shm/shm.h"
#include "tests/support/temporary_folder.h"

namespace farside::fabric::shm {

inline FarAddr At(uint64_t offset) { return FarAddr(NodeId{0}, offset); }

// What was logged; from any thread.
class LogLines {
 public:
  void Add(std::string_view line) {
    const std::scoped_lock lock(mutex_);
    text_ += line;
  }
  bool Contains(std::string_view text) const {
    const std::scoped_lock lock(mutex_);
    return text_.find(text) != std::string::npos;
  }
  size_t Count(std::string_view text) const {
    const std::scoped_lock lock(mutex_);
    size_t count = 0;
    for (size_t at = text_.find(text); at != std::string::npos; at = text_.find(text, at + 1)) ++count;
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

class Daemon {
 public:
  static constexpr uint64_t kRegionBytes = 64 * 1024;

  explicit Daemon(const std::string& path, ServerOptions options = {}, memory::RegionId id = NewRegionId(),
                  LogLevel level = LogLevel::kInfo)
      : Daemon(path, std::move(*memory::Region::Shareable(kRegionBytes)), std::move(options), id, level) {}
  Daemon(const std::string& path, memory::Region region, ServerOptions options, memory::RegionId id,
         LogLevel level = LogLevel::kInfo)
      : level_(level) {
    options.node = path;
    options.log = &logger_;
    options.clock = &clock;
    memory = std::move(*SharedMemory::Create(std::move(region), id));
    node = std::make_unique<memory::ServedNode>(memory->region(), memory->stripes(), id, &clock);
    server = std::move(*Server::Start(*node, *memory, options));
  }

  ClientSlot& slot(uint32_t number) const { return memory->control().slots[number]; }

  LogLines log;
  ManualClock clock;

 private:
  const LogLevel level_;
  Logger logger_{level_, [this](std::string_view line) { log.Add(line); }};

 public:
  std::unique_ptr<SharedMemory> memory;
  std::unique_ptr<memory::ServedNode> node;
  std::unique_ptr<Server> server;
};

inline std::unique_ptr<ShmFabric> OpenAt(const std::string& path) {
  return std::move(*ShmFabric::Open(Options{.nodes = {path}}));
}

template <class Condition>
void Await(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

inline Task<uint64_t> ReadWord(Client& client, uint64_t offset) {
  Op op(client, OpKind::kSearch);
  const uint64_t word = co_await op.InOrder(Read<uint64_t>(At(offset)));
  co_return word;
}
inline Task<uint64_t> Add(Client& client, uint64_t offset, uint64_t delta) {
  Op op(client, OpKind::kUpdate);
  const uint64_t old = co_await op.InOrder(Faa(At(offset), delta));
  co_return old;
}
inline Task<Done> FenceOut(Client& client, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await FenceEverywhere(op, victim);
  co_return Done{};
}
inline Task<std::string> CallIt(Client& client, CallId call, std::string request) {
  Op op(client, OpKind::kMaintenance);
  std::string reply = co_await op.Call(NodeId{0}, call, request);
  co_return reply;
}

}  // namespace farside::fabric::shm
