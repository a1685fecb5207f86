// A client of a fabric: one connection to every node, used by one thread, with any number of trips in
// flight. Each backend derives from it; engines reach it through Op.
//
// A client whose completion was lost is broken for good: every later trip fails, or every later trip to that
// node if the backend says so (Reaches). One that was fenced is broken as a whole.
// Reconnecting means a new client with a new id.
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

// A coroutine that waits for time to pass; lives in its frame, like a Trip.
class Timer {
 public:
  explicit Timer(Nanos at) : due(at) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  const Nanos due;
  std::coroutine_handle<> waiter;
  void* backend_data = nullptr;
};

class Client {
 public:
  explicit Client(ClientId id) : id_(id) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  ClientId id() const { return id_; }
  Counters& counters() { return counters_; }

  // The size of every node's region, in the order of the nodes.
  virtual std::span<const uint64_t> region_bytes() const = 0;
  virtual Nanos Now() const = 0;

  // Posts a trip. True: it has ended already (look at it, do not wait). False: a later Poll resumes
  // its waiter.
  virtual bool Start(Trip& trip) = 0;
  // The waiter is destroyed before the trip has ended. Nothing may touch the trip or its buffers
  // afterwards; its verbs may still take effect.
  virtual void Abandon(Trip& trip) noexcept = 0;
  // Posts a trip that no coroutine waits for; its verbs and WRITE payloads are copied.
  virtual void Detach(Order order, std::span<const Verb> verbs) = 0;

  // Whether verbs are in flight that no coroutine waits for: detached, or abandoned. They may still take
  // effect, so what they point to must not be reused. A backend that executes them at once has none.
  virtual bool HasUnawaited() const { return false; }

  virtual void Start(Timer& timer) = 0;
  virtual void Abandon(Timer& timer) noexcept = 0;

  // Makes progress and resumes what has become ready. False: nothing is in flight, so waiting longer
  // would be for ever.
  virtual bool Poll() = 0;

  // Whether trips to this node can still succeed. A backend whose connections break one by one says false for
  // broken ones: every later trip to that node fails with kUnavailable at once, and the client goes on with
  // the other nodes. A connection is never repaired; a new client may have it again.
  virtual bool Reaches(NodeId /*node*/) const { return true; }

  // Whether nodes refuse what this client would change, except its registration in the pool
  // (pool/members/reader_guard.h).
  virtual bool read_only() const { return false; }
  // Whether READs of a trip in order are sampled in that order (fabric/12); false on fabrics with freedom/5.
  virtual bool orders_reads() const = 0;
  // Whether nodes answer kWhoIsGone (service.h): they know for certain that a client is dead, without waiting
  // for its lease.
  virtual bool CanTellWhoIsGone() const { return false; }

  // How many operations at once are worth having: enough to hide what one waits for. More would only wait in
  // queues.
  virtual size_t worthwhile_concurrency() const { return 32; }

  // How many operations its owner runs at once. With one, a backend that completes at once does so
  // without suspending; with more, it uses the gap to prefetch.
  void set_concurrency(size_t operations) { concurrency_ = operations; }
  size_t concurrency() const { return concurrency_; }

 private:
  const ClientId id_;
  size_t concurrency_ = 1;
  Counters counters_;
};

}  // namespace farside::fabric
