// A memory node as a daemon serves it: one region, the clients that are connected to it by whatever
// transport, and fencing between them.
//
//   tcp server ---+                     +-- LineMemory (region, stripes)
//   shm server ---+-->  ServedNode  ----+-- CallTable, one handler at a time
//                                       +-- Medium, if what handlers flush is to survive a power cut
//                                       +-- clients by their ids
//
// A client of several nodes has one id on all of them. It chooses the id at random and asks each node for it;
// a node refuses an id that is taken, or was used lately, and the client tries another. So an id names one
// client at a time. If an id came back after a very long while, a client that means to fence its last bearer
// would hit the new one: the new bearer has to connect anew, and nothing is lost.
//
// INVARIANT node/1: when a fence has completed, no verb of the victim takes effect on this node any more, and
// its id is not admitted again (for as long as the node remembers; see above).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "fabric/address.h"
#include "fabric/memory/handler_memory.h"
#include "fabric/memory/line_memory.h"
#include "fabric/memory/medium.h"
#include "fabric/memory/own_holds.h"
#include "fabric/memory/stuck_lines.h"
#include "fabric/memory/thread_memory.h"
#include "fabric/service.h"
#include "fabric/verb.h"
#include "farside/result.h"

namespace farside::fabric::memory {

// Which memory a node has. It is told in every handshake: another id means that everything known of the old
// memory is void.
using RegionId = std::array<uint64_t, 2>;

// A client as a node sees it. Derived by each transport.
class ServedClient {
 public:
  virtual ~ServedClient() = default;
  // From now on it begins nothing any more. Does not wait. Called once at most, from any thread.
  virtual void CutOff() = 0;
  // After CutOff: whether what it had begun has ended, for good. Called again and again, from one thread at a
  // time.
  virtual bool IsStill() = 0;
};

class ServedNode {
 public:
  // All must outlive this. Without a clock, that of the machine says how long threads wait for lines. Without
  // a medium, what handlers flush has no effect, but is counted.
  ServedNode(std::span<std::byte> region, StripeTable& stripes, RegionId id, const Clock* clock = nullptr,
             std::unique_ptr<Medium> medium = nullptr);
  ServedNode(const ServedNode&) = delete;
  ServedNode& operator=(const ServedNode&) = delete;
  // Every server of the node must be gone.
  ~ServedNode();

  // For one thread at a time. Waits for lines as long as it takes; a thread that serves clients has its own.
  LineMemory& memory() { return memory_; }
  // For a thread of a server. The node must outlive it.
  std::unique_ptr<ThreadMemory> NewThreadMemory();
  // Frees lines that are held by no client and by no thread of the node; `clients[number]` says which numbers
  // clients have. Returns how many those were. For the daemon of shared memory, now and then.
  size_t FreeStrays(const std::vector<bool>& clients);
  // When clients of shared memory are gone, and nothing frees the lines that they may have left: from now on
  // no thread waits for one.
  void StopWaiting();
  uint64_t region_bytes() const { return memory_.bytes(); }
  RegionId region_id() const { return region_id_; }

  // Fill it before the first client comes.
  CallTable& calls() { return calls_; }
  // kOutcomeUnknown if a handler has waited too long for a line, or has flushed in vain; after that,
  // kUnavailable.
  Result<std::string> Call(CallId call, ClientId caller, std::string_view request);
  // What handlers have flushed so far. Safe from any thread.
  FlushCounts flushed() const { return handler_memory_.counts(); }

  // kAlreadyExists if the id is taken, was used lately, or is 0: try another. The client is kept until it
  // departs.
  Status Admit(ClientId id, std::shared_ptr<ServedClient> client);
  // When nothing of it can take effect any more.
  void Depart(ClientId id);
  size_t clients() const;

  // Cuts a client off and calls `done` when node/1 holds: at once, or later on a thread of the node, and then
  // only if `asker` is still there. A client that is not here is cut off already. The caller must not be
  // inside a gate (gate/2).
  void Fence(ClientId victim, std::weak_ptr<const void> asker, std::function<void()> done);
  // The answer to kGoneClients.
  Result<std::string> GoneClients(std::string_view request) const;
  // Fences that began: a client that was fenced shows up here.
  uint64_t fences() const;

 private:
  static constexpr size_t kRemembered = 1 << 16;

  struct Pending {
    std::shared_ptr<ServedClient> client;
    std::weak_ptr<const void> asker;
    std::function<void()> done;
  };
  struct Entry {
    std::shared_ptr<ServedClient> client;
    bool cut_off = false;
  };

  void RunFences();

  const RegionId region_id_;
  const SteadyClock steady_clock_;
  const Clock& clock_;
  const std::span<std::byte> region_;
  StripeTable& stripes_;
  std::atomic<bool> waits_end_ = false;
  StuckLines stuck_;
  OwnHolds own_holds_;  // of all of its threads
  OwnHold own_hold_;    // by way of memory_
  LineMemory memory_;
  CallTable calls_;
  const std::unique_ptr<Medium> medium_;
  std::mutex cpu_;           // held while a handler runs: a node has one CPU
  ThreadMemory cpu_memory_;  // of what follows
  HandlerMemory handler_memory_;

  mutable std::mutex mutex_;  // of what follows
  std::unordered_map<ClientId, Entry> clients_;
  std::deque<ClientId> departed_order_;  // the last kRemembered ids that departed
  std::unordered_set<ClientId> departed_;
  uint64_t fences_ = 0;
  std::vector<Pending> pending_;  // victims that are not still yet; of askers that are still there
  bool closing_ = false;
  std::condition_variable wake_;
  std::thread fencer_;  // waits for them; started when it is first needed
};

}  // namespace farside::fabric::memory
