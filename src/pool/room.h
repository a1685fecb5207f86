// When a pool is full: what a client does that found no room, before it says so.
//
//   RoomSearch search(pool);
//   while (the operation fails with kOutOfMemory && !search.concluded()) {
//     co_await search.Round(op);
//     ... the operation again ...
//   }
//
// That there is no room is said only when no other client keeps what it could give back:
//   - The client that searches has no pin, and goes offline if nothing of it is in flight: what it has
//     retired itself does not wait for its own epoch.
//   - It raises room_wanted, and reads an epoch afterwards. A client that syncs after that harvests all that
//     it owns, and releases what is empty; one that is idle gives up all its chunks, so that the client that
//     searches can empty the sparse ones (evac/2).
//   - It looks at the registry until no client can have an operation in flight that began before that epoch
//     was read, and the heartbeat of every client says that it has done so. Clients that are offline beat,
//     too.
//   - After a quarter of a lease it waits no longer: some client is silent, or has a long operation in
//   flight.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/client.h"

namespace farside::pool {

class RoomSearch {
 public:
  // `patient`: waits also for the answers of all clients. A client that has found the pool full a moment ago
  // has done so.
  enum class Patience : uint8_t { kPatient, kBrief };
  explicit RoomSearch(PoolClient& pool, Patience patience = Patience::kPatient);

  // Makes what room there is. The caller holds no pin; its client may be offline afterwards.
  Task<Done> Round(fabric::Op& op);
  // Whether an operation that still finds no room may say so.
  bool concluded() const { return concluded_; }
  // How long to wait before the next round, if it is not concluded.
  Nanos PauseBetweenRounds() const;
  PoolClient& pool() const { return *pool_; }
  bool patient() const { return patience_ == Patience::kPatient; }

 private:
  Task<Done> Begin(fabric::Op& op);
  bool IsConclusive() const;

  PoolClient* const pool_;
  const Patience patience_;
  const Nanos began_;
  bool begun_ = false;
  int rounds_ = 0;
  bool concluded_ = false;
  std::vector<uint64_t> epochs_;  // by node, read after room_wanted was raised
  std::vector<uint64_t> wanted_;  // by node: room_wanted, as it was read with them
};

}  // namespace farside::pool
