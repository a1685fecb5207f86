// A client of a fabric: one connection to every node, used by one thread, with any number of trips in
// flight. Each backend derives from it; engines reach it through Op.
//
// A client that has lost a completion is broken for good: every later trip fails, or, if the backend says so
// (Reaches), every later trip to that node. A client that was fenced is broken for all nodes. To reconnect is
// to make a new client, with a new id.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "fabric/address.h"
#include "fabric/counters.h"
#include "fabric/trip.h"

namespace farside::fabric {

// A coroutine that waits for a time. It lives in the frame of the coroutine, like a Trip.
class Timer {
 public:
  explicit Timer(Nanos at) : due(at) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  const Nanos due;
  std::coroutine_handle<> waiter;
  void* backend_data = nullptr;
};

// How long a trip takes, beside a look into the client's own memory.
enum class Distance : uint8_t {
  kNear,  // not much longer: the client executes its verbs itself
  kFar,   // a thousand times as long: what was read is worth remembering
};

class Client {
 public:
  explicit Client(ClientId id, Distance distance = Distance::kNear) : id_(id), distance_(distance) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  ClientId id() const { return id_; }
  Distance distance() const { return distance_; }
  Counters& counters() { return counters_; }

  // The size of every node's region, in the order of the nodes.
  virtual std::span<const uint64_t> region_bytes() const = 0;
  virtual Nanos Now() const = 0;

  // Posts a trip. True: it has ended already, and its waiter need not suspend. False: a later Poll resumes
  // its waiter.
  virtual bool Start(Trip& trip) = 0;
  // The waiter is destroyed before the trip has ended. Nothing may touch the trip or its buffers
  // afterwards; its verbs may still take effect.
  virtual void Abandon(Trip& trip) noexcept = 0;
  // Posts a trip without a waiter. Its verbs and WRITE payloads are copied.
  virtual void Detach(Order order, std::span<const Verb> verbs) = 0;

  // Whether verbs without a waiter are in flight: detached or abandoned ones. They may still take effect, so
  // the far memory that they name must not be reused. A backend that executes verbs at once has none.
  virtual bool HasUnawaited() const = 0;
  // How many trips it has posted so far, and whether verbs without a waiter of the first `posted` of them are
  // in flight. The count may rise by more than one with a trip. Epochs wait for these verbs (pool/1), so no
  // backend has a default of them.
  virtual uint64_t trips_posted() const = 0;
  virtual bool HasUnawaitedOfFirst(uint64_t posted) const = 0;

  virtual void Start(Timer& timer) = 0;
  virtual void Abandon(Timer& timer) noexcept = 0;

  // Makes progress, and resumes coroutines whose trips or timers have ended. False: nothing is in flight, so
  // waiting longer would last forever.
  virtual bool Poll() = 0;

  // Whether trips to this node can still succeed. False: the connection to this node is broken; every later
  // trip to it fails with kUnavailable at once, and the client continues with the other nodes. A broken
  // connection is never repaired, but a new client may reach the node again.
  virtual bool Reaches(NodeId /*node*/) const { return true; }

  // Whether nodes refuse all changes of this client but its registration in the pool
  // (pool/members/reader_guard.h).
  virtual bool read_only() const { return false; }
  // Whether READs of a trip in order are sampled in that order (fabric/12); false on fabrics with freedom/5.
  virtual bool orders_reads() const = 0;
  // Whether nodes answer kGoneClients (service.h): they know for certain, and at once, which clients died.
  virtual bool CanTellGoneClients() const { return false; }

  // How many operations at once hide the latency of one. More would only wait in queues.
  virtual size_t worthwhile_concurrency() const { return 32; }

  // How many operations the owner of the client runs at once. With one, a backend that executes verbs itself
  // ends a trip without suspending; with more, it suspends, and prefetches meanwhile.
  void set_concurrency(size_t operations) { concurrency_ = operations; }
  size_t concurrency() const { return concurrency_; }

 private:
  const ClientId id_;
  const Distance distance_;
  size_t concurrency_ = 1;
  Counters counters_;
};

}  // namespace farside::fabric
