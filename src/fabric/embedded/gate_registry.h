// The gates of all clients of the embedded fabric: which clients are connected, and how to cut one off.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "fabric/address.h"
#include "fabric/memory/gate.h"

namespace farside::fabric::embedded {

using memory::Gate;

// The gates of all clients that are connected. Safe from any thread.
class GateRegistry {
 public:
  struct Registration {
    ClientId id;
    std::shared_ptr<Gate> gate;  // shared: a fencer may still wait at the gate of a client that departs
  };

  // A new client, with an id that was never given before; kNone if there are no more ids.
  Registration Add() {
    const std::scoped_lock lock(mutex_);
    if (last_id_ == kLastId) return {ClientId::kNone, nullptr};
    const auto id = static_cast<ClientId>(++last_id_);
    return {id, gates_.emplace(id, std::make_shared<Gate>()).first->second};
  }
  void Remove(ClientId id) {
    const std::scoped_lock lock(mutex_);
    gates_.erase(id);
  }
  // Null: such a client never was, or has departed.
  std::shared_ptr<Gate> Find(ClientId id) {
    const std::scoped_lock lock(mutex_);
    const auto found = gates_.find(id);
    return found == gates_.end() ? nullptr : found->second;
  }

 private:
  static constexpr uint32_t kLastId = ~uint32_t{0};

  std::mutex mutex_;
  std::unordered_map<ClientId, std::shared_ptr<Gate>> gates_;
  uint32_t last_id_ = 0;
};

}  // namespace farside::fabric::embedded
