// A client's membership of one node of a pool: its registration, its pulse, the epochs, and the rules by
// which dead clients are told from slow ones.
//
// Invariants
//   pool/1  A pulse's epoch is published only when every operation in flight, and every detached verb, began
//           after that epoch was read. So when every live client has published more than e, no operation
//           holds a pointer to what was unlinked before a client read e.
//   pool/2  Nothing of another client is touched before the fabric has fenced it on every node. Silence makes
//           a client suspect, never dead.
//   pool/3  A generation names one registration for ever: an owner whose slot has another generation, or is
//           free, is gone and holds nothing that it could still use.
//   pool/4  (sync_listener.h)
//   off/1 to off/6 (presence.cc, sync_listener.h): a client without an operation in flight holds nothing
//   back.
//
// The trip of a sync is [WRITE my pulse, CAS epoch, READ control], in this order: what is published was true
// before the epoch that is read next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "fabric/op.h"
#include "fabric/service.h"
#include "farside/task.h"
#include "pool/members/sync_listener.h"
#include "pool/region/layout.h"

namespace farside::pool {

struct LeaseOptions {
  Nanos lease =
      std::chrono::seconds(10);  // a heartbeat that stands still for this long makes a client suspect
};

// What is known of an owner.
enum class Standing : uint8_t {
  kAlive,  // or not silent for long enough; wait and ask again
  kGone,   // left, or fenced: its locks may be taken, its work finished or undone
};

// What one look at the registry says about the other clients.
struct RegistryView {
  uint64_t safe_epoch = 0;     // what was stamped with less may be reused
  uint64_t settled_epoch = 0;  // what others retired before this has been given back
  std::vector<Owner> fenced;   // cut off, and waiting to be adopted
  uint32_t others = 0;         // slots that others hold, the fenced included
};

// Shared, because a table may be closed while a sync is under way.
using SyncListeners = std::vector<std::shared_ptr<SyncListener>>;

class Membership {
 public:
  Membership(fabric::Client& client, fabric::NodeId node, const Geometry& geometry,
             const LeaseOptions& options)
      : client_(client), node_(node), geometry_(geometry), options_(options) {}
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Called now and then while this client waits, as a sign of life elsewhere.
  using WhileWaiting = std::function<Task<Done>(fabric::Op& op)>;

  // Registers: takes a free slot and becomes live. If all slots are taken, it helps to release the slots of
  // dead clients, which takes some leases at most; kOutOfMemory if live clients have all of them, or no
  // client can adopt what the dead ones have left.
  Task<Done> Join(fabric::Op& op, WhileWaiting while_waiting = {});
  // Gives the slot back. Everything owned must have been given back before, and nothing be in flight.
  Task<Done> Leave(fabric::Op& op);

  // One trip: publishes `epoch` and `settled`, raises the global epoch if `raise`, and reads the control
  // line. The caller answers for pool/1: `epoch` is at most known_epoch() when the oldest operation in flight
  // began. The listeners are called before it is posted, and when it has ended. The task copies them when it
  // starts; until then they must stay as they are.
  Task<Done> Sync(fabric::Op& op, uint64_t epoch, uint64_t settled, bool raise,
                  std::span<const std::shared_ptr<SyncListener>> listeners = {});
  // Reads the pulses of all clients. A client that has been silent for a lease is fenced on the way. If
  // `raise`, the global epoch is raised first, in the same trip: so what was stamped with the known epoch is
  // past its grace at once if all clients are offline (off/4).
  Task<RegistryView> LookAround(fabric::Op& op, bool raise = false);
  // Whether every other client that the looks around have seen has shown a sign of life after `since`.
  bool AllHaveBeatenSince(Nanos since) const;
  // The same: whether they had given back what they could when room was wanted for this time, or later.
  bool AllHaveAnswered(uint64_t room_wanted) const;
  // This client has done so: its pulse says it from now on.
  void AnswerRoomWanted(uint64_t room_wanted) { answered_ = room_wanted; }
  bool HasAnswered() const { return answered_ == control_.room_wanted; }
  // Whether the last pulse says so.
  bool HasShownAnswer() const { return shown_ == control_.room_wanted; }

  // ---- for the trips of PoolClient that go offline and come back (presence.cc)
  // What to WRITE next, and where.
  Pulse NextPulse(uint64_t epoch, uint64_t settled) {
    return {.epoch = epoch, .heartbeat = NextHeartbeat(), .settled = settled};
  }
  fabric::FarAddr pulse_at() const { return At(geometry_.client_slot(self_.slot()) + kPulseOffset); }
  // The control line, as a trip has READ it. No operation may know the epoch before all listeners know what
  // was true at it (pool/4).
  void Learn(const Control& read);

  // Whether an owner of a lock or a chunk on this node may be treated as dead. Fences it if it has been
  // silent for a lease, as far as this client has seen; so ask repeatedly, with pauses. Asking is a sign of
  // life.
  Task<Standing> StandingOf(fabric::Op& op, Owner owner);

  // Ends the adoption of a fenced client: its slot may be used again. Nothing may name it as owner any more.
  Task<Done> ReleaseSlot(fabric::Op& op, Owner dead);

  Owner self() const { return self_; }
  fabric::Client& client() const { return client_; }
  fabric::NodeId node() const { return node_; }
  const Geometry& geometry() const { return geometry_; }
  const LeaseOptions& options() const { return options_; }
  fabric::FarAddr At(uint64_t offset) const { return fabric::FarAddr(node_, offset); }

  // As of the last sync.
  uint64_t known_epoch() const { return control_.epoch; }
  const Control& control() const { return control_; }

 private:
  // Since when a pulse has had its present heartbeat, as seen by this client.
  struct Watch {
    ClientWord word;
    uint64_t heartbeat = 0;
    Nanos since{0};
    Nanos asked{0};  // when the node was asked for it
  };

  // ---- joining (join.cc)
  // A client that is fenced, and an epoch that was read when all clients could know.
  struct DeadClient {
    Owner dead;
    uint64_t stamp = 0;
  };
  struct Holdings {
    bool owns = false;       // some chunk or extent names it
    bool ownerless = false;  // some chunk or extent has no owner
  };
  Task<bool> TakeFreeSlot(fabric::Op& op);
  Task<bool> TakeSlot(fabric::Op& op, uint32_t slot, ClientWord found);
  // True: to look again at once is of use. It has released a slot, or announced deaths, on which only a later
  // look can conclude.
  Task<bool> ReleaseDeadSlot(fabric::Op& op, RegistryView view, std::vector<DeadClient>& dead_clients);
  // True if there were deaths to announce.
  Task<bool> Announce(fabric::Op& op, const RegistryView& view, std::vector<DeadClient>& dead_clients);
  // What a fenced client has left. If `disown`, its chunks and extents lose their owner.
  Task<Holdings> ReadHoldings(fabric::Op& op, Owner dead, bool disown);
  Task<bool> IsAnotherFenced(fabric::Op& op, Owner than);
  Error NoSlot(const RegistryView& view) const;

  // Returns the largest epoch that the look may conclude to be safe.
  Task<uint64_t> ReadRegistry(fabric::Op& op, std::span<ClientSlot> slots, bool raise);
  Task<Done> SyncWithListeners(fabric::Op& op, Pulse pulse, bool raise,
                               std::span<const std::shared_ptr<SyncListener>> waiting);
  uint64_t NextHeartbeat() {
    shown_ = answered_;
    return Heartbeat::Of(++beats_, answered_);
  }
  bool IsSelf(uint32_t slot) const { return !self_.is_none() && slot == self_.slot(); }
  // True if the client in the slot has shown no sign of life for a lease. `asked`: when the READ of `seen`
  // was posted.
  bool IsSilent(uint32_t slot, const ClientSlot& seen, Nanos asked);
  // Of the slots from `first` on: the clients that the node knows to be gone, and that have not left in good
  // order. Asks about a client at first sight, and then if it is silent. Empty if there was none to ask
  // about, or the fabric cannot tell.
  Task<std::vector<bool>> GoneClients(fabric::Op& op, uint32_t first, std::span<const ClientSlot> slots);
  bool IsWorthAsking(uint32_t slot, const ClientSlot& seen);
  // False: some node is out of reach, where verbs of the client might still take effect.
  Task<bool> TryFence(fabric::Op& op, uint32_t slot, ClientWord word);
  bool ReachesAll() const;
  // Cuts the client off from every node, then marks its slot as fenced.
  Task<Done> Fence(fabric::Op& op, uint32_t slot, ClientWord word);

  fabric::Client& client_;
  const fabric::NodeId node_;
  const Geometry geometry_;
  const LeaseOptions options_;
  Owner self_;
  ClientWord word_;
  uint32_t beats_ = 0;
  uint64_t answered_ = 0;  // room_wanted, when this client last gave back what it could
  uint64_t shown_ = 0;     // the same, as of the last pulse
  Control control_{};
  std::map<uint32_t, Watch> watches_;
  // Kept between calls, so that a sync allocates nothing on the heap.
  std::vector<ClientSlot> looked_at_;  // what LookAround has read
  SyncListeners last_listeners_;       // of the last sync; empty
};

}  // namespace farside::pool
