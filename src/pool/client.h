// A client of a pool: a member of each of its nodes, with its operations in flight.
//
//   auto client = co_await PoolClient::Join(op, fabric_client, geometries, options);
//   {
//     PoolClient::Pin pin = client->Begin();
//     ... one operation: far pointers stay valid until the pin is gone ...
//   }
//   if (client->MaintenanceDue()) co_await client->Maintain(op);
//   co_await client->Leave(op);
//
// An operation holds a Pin. Between two syncs all operations belong to one generation, which remembers
// the epochs that were known when it began; the oldest generation with an operation in flight decides
// what a sync may publish (pool/1).
//
// A client without an operation in flight may go offline (GoOffline): then no other client waits for it. It
// has to come back (ComeOnline) before its next operation begins. The rules are in presence.cc.
//
// A client may reach only some of the nodes (fabric::Client::Reaches). It is a member of those; operations on
// the others fail with kUnavailable. Fencing a client, and the repair of what dead clients have left, need
// all nodes, and wait until a client reaches them; a table is not dropped without them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "pool/members/membership.h"
#include "pool/memory/allocator.h"
#include "pool/memory/sweep.h"
#include "pool/region/layout.h"

namespace farside::pool {

struct ClientOptions {
  LeaseOptions lease;
  uint64_t operations_per_sync = 1000;  // at most; the lease asks for further syncs
};

class PoolClient {
  struct Generation {
    uint64_t in_flight = 0;
    std::vector<uint64_t> epochs;  // per node, as known when the generation began
    // Trips that the client had posted when its last operation was seen to have ended.
    std::optional<uint64_t> trips_posted;
  };

 public:
  // Marks every block that is reachable from a table; supplied by the layer that knows the engines.
  using Walk = std::function<Task<Done>(fabric::Op&, Reach&)>;

  // An operation in flight.
  class Pin {
   public:
    Pin(Pin&& other) noexcept
        : client_(std::exchange(other.client_, nullptr)), generation_(other.generation_) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin() {
      if (client_ != nullptr) client_->End(*generation_);
    }
    // The epoch that was known when the operation began: the birth of what it retires.
    uint64_t epoch(fabric::NodeId node) const {
      const uint64_t* const epoch = fabric::ForNode(generation_->epochs, node);
      return epoch != nullptr ? *epoch : 0;
    }

   private:
    friend class PoolClient;
    Pin(PoolClient& client, Generation& generation) : client_(&client), generation_(&generation) {}
    PoolClient* client_;
    Generation* generation_;
  };

  // Registers on every node that the client reaches; `geometries` are those of the nodes, in their order. A
  // node without a free slot may take some leases (membership.h).
  static Task<std::unique_ptr<PoolClient>> Join(fabric::Op& op, fabric::Client& client,
                                                std::vector<Geometry> geometries, ClientOptions options);
  PoolClient(const PoolClient&) = delete;
  PoolClient& operator=(const PoolClient&) = delete;

  // Gives everything back and deregisters. No operation may be in flight.
  Task<Done> Leave(fabric::Op& op);

  // Begins an operation, or several that share one pin. The client must be online.
  Pin Begin(uint64_t operations = 1);
  uint64_t operations_in_flight() const { return in_flight_; }
  // Pins so far.
  uint64_t operations_begun() const { return begun_; }

  // ---- presence (presence.cc)
  bool online() const { return online_; }
  // Publishes on every node that no operation is in flight: one WRITE each, all at once. False: something is
  // in flight, or will use this client again; it stays online. A client that joins is online.
  Task<bool> GoOffline(fabric::Op& op);
  // When it has ended, operations may begin. One trip to each node, or none if the client is online.
  Task<Done> ComeOnline(fabric::Op& op);
  // For a client that will not be used soon: comes online, and gives up the chunks that it owns. It stops
  // after a small part of a lease, and as soon as `wanted` says that the session's owner waits for it. False:
  // some are left, for this reason, or because some of what it has retired waits for grace, or a dead client
  // may have leaked blocks of them.
  Task<bool> Disown(fabric::Op& op, const std::atomic<bool>* wanted = nullptr);

  // An operation that waits without a pin, and will use this client again.
  class UnpinnedWait {
   public:
    explicit UnpinnedWait(PoolClient& client) : client_(client) { ++client_.unpinned_waits_; }
    UnpinnedWait(const UnpinnedWait&) = delete;
    UnpinnedWait& operator=(const UnpinnedWait&) = delete;
    ~UnpinnedWait() { --client_.unpinned_waits_; }

   private:
    PoolClient& client_;
  };
  // Whether no operation is in flight or will come back, so that the client may go away.
  bool idle() const { return in_flight_ == 0 && unpinned_waits_ == 0; }

  // Publishes, and reads the control lines: one trip to each node that it reaches, one after the other. A
  // client that is offline stays so.
  Task<Done> Sync(fabric::Op& op, bool raise);
  // Whether enough has happened, or enough time passed, for Maintain.
  bool MaintenanceDue() const;
  // The same, but ignores elapsed time; the keeper tracks it.
  bool MaintenanceDueByCount() const {
    return sync_requested_ || since_round_ >= options_.operations_per_sync;
  }
  // Syncs, then does what is due: giving back what is past its grace, callbacks, adoption of dead clients'
  // memory.
  Task<Done> Maintain(fabric::Op& op);
  // Maintain without the repair after deaths, which can take leases: some trips, and no pauses. Of a client
  // that is offline and waits for nothing, one trip to each node.
  Task<Done> KeepUp(fabric::Op& op);
  // Whether something that this client has unlinked waits for the epochs of other clients.
  bool NeedsGrace() const;
  // Whether a callback of AfterGrace is waiting.
  bool WaitsForGrace() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [this](const auto& node) { return TakesPart(*node) && !node->waiting.empty(); });
  }
  // Whether dead clients may have leaked blocks of chunks that this client owns; Maintain looks for them.
  bool RepairDue() const;

  // ---- room (room.h)
  // Tells all clients of the pool, on every node, that this one found no room: each gives back what it can
  // when it syncs next.
  Task<Done> WantRoom(fabric::Op& op);
  // Whether another client wants room, and the last pulse does not say that this one has given back all that
  // it could. One that is idle owes its chunks, too (Disown).
  bool OwesRoom() const {
    return std::any_of(nodes_.begin(), nodes_.end(), [this](const auto& node) {
      return TakesPart(*node) && !node->membership.HasShownAnswer();
    });
  }
  // Whether an allocation has failed for lack of memory since ForgetNoMemory.
  bool FoundNoMemory() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](const auto& node) { return node->allocator.FoundNoMemory(); });
  }
  void ForgetNoMemory() {
    for (const auto& node : nodes_) node->allocator.ForgetNoMemory();
  }
  // KeepUp that looks at the registry in any case, and raises the epoch. When it has ended, so has a sync and
  // a look that began after the call, by this task or another one of the client; unless one of them was busy
  // with something else for as long as a search may take.
  Task<Done> LookForRoom(fabric::Op& op);
  // How long a search for room waits for clients that do not move.
  Nanos LongestSearch() const;
  // Something may have been freed: the allocators look for room again as soon as they need some.
  void ExpectRoom() {
    for (const auto& node : nodes_) node->allocator.ExpectRoom();
  }
  // What the last look at the registry has shown to be safe.
  uint64_t safe_epoch(fabric::NodeId node) const { return NodeOf(node).safe_epoch; }
  bool IsMember(fabric::NodeId node) const { return TakesPart(NodeOf(node)); }
  // Gives back at once what FreeUnused has freed, on all nodes.
  Task<Done> GiveBackUnused(fabric::Op& op);

  // Calls `callback` in some later Maintain, when every client that was live at this call has moved past it:
  // no operation that began before this call is in flight any more.
  void AfterGrace(fabric::NodeId node, std::function<void()> callback);

  // Every sync of the node takes `listener` along, until it is removed.
  void AddSyncListener(fabric::NodeId node, std::shared_ptr<SyncListener> listener) {
    NodeOf(node).listeners.push_back(std::move(listener));
    ++NodeOf(node).listeners_added;
  }
  void RemoveSyncListener(fabric::NodeId node, const SyncListener* listener) {
    std::erase_if(NodeOf(node).listeners, [listener](const auto& known) { return known.get() == listener; });
  }
  // Asks for a sync before the next operation. A listener's wish costs one trip; if a callback waits for
  // grace, Maintain does all that it takes.
  void RequestSync() { sync_requested_ = true; }
  // A number that this client has not had before: with its name as owner, one that no client has had.
  uint64_t NextToken() { return ++tokens_; }
  // The largest epoch that this client has published on the node, or is about to. INVARIANT off/6: going
  // offline does not change it; engines take it for the birth of what they retire.
  uint64_t published_epoch(fabric::NodeId node) const { return NodeOf(node).published; }
  // As of the last look at the registry, this client included.
  uint32_t live_clients(fabric::NodeId node) const { return NodeOf(node).live; }

  // The sum of the known epochs of all nodes: it changes when one of them does.
  uint64_t KnownEpochs() const {
    uint64_t sum = 0;
    for (const auto& node : nodes_) sum += node->membership.known_epoch();
    return sum;
  }

  // The known changes of all catalogs. If the number has not moved since an operation began, the table that
  // it works on is still there for a new pin (catalog/5).
  uint64_t known_catalog_changes() const {
    uint64_t sum = 0;
    for (const auto& node : nodes_) sum += node->membership.control().catalog_changes;
    return sum;
  }

  // A client without a walk cannot tell what is reachable, and leaves the repair after deaths to others.
  void set_walk(Walk walk) { walk_ = std::move(walk); }

  // Of a node that the pool does not have: a member of nowhere, whose trips fail with kCorrupt, and an
  // allocator that has no memory and takes back nothing.
  Membership& member(fabric::NodeId node) { return NodeOf(node).membership; }
  Allocator& allocator(fabric::NodeId node) { return NodeOf(node).allocator; }
  size_t nodes() const { return nodes_.size(); }
  fabric::Client& client() { return client_; }
  // Whether it may change nothing in the pool except its own registration: other clients have to grow, repair
  // and fence.
  bool read_only() const { return client_.read_only(); }

 private:
  static constexpr uint64_t kUnstamped = ~uint64_t{0};
  struct Waiting {
    uint64_t stamp = 0;  // an epoch read after the call; kUnstamped until then
    std::function<void()> callback;
  };
  struct Node {
    Node(fabric::Client& client, fabric::NodeId id, const Geometry& geometry, const LeaseOptions& lease)
        : membership(client, id, geometry, lease), allocator(membership) {}
    Membership membership;
    Allocator allocator;
    bool joined = false;
    std::deque<Waiting> waiting;  // for grace, in the order of the calls
    uint64_t called = 0;          // how many have waited before them
    std::vector<Owner> fenced;    // as of the last look at the registry
    uint32_t live = 1;            // as of the last look at the registry
    uint64_t safe_epoch = 0;      // as of the last look at the registry
    uint64_t spares_given = 0;    // what room_wanted was when this client last released what was empty
    uint64_t published = 0;
    SyncListeners listeners;
    uint64_t listeners_added = 0;
  };

  PoolClient(fabric::Client& client, const std::vector<Geometry>& geometries, ClientOptions options);

  // The one way from the number of a node to what this client knows of it. Any number is allowed, because far
  // memory may hold any.
  Node& NodeOf(fabric::NodeId node) const {
    const std::unique_ptr<Node>* const known = fabric::ForNode(nodes_, node);
    return known != nullptr ? **known : *nowhere_;
  }
  Task<Done> Beat(fabric::Op& op, size_t nodes);
  void End(Generation& generation);
  // Whether this client is a member of the node, and still reaches it.
  bool TakesPart(const Node& node) const { return node.joined && client_.Reaches(node.membership.node()); }
  bool TakesPartEverywhere() const;
  void NewGeneration();
  // Whether more than a sync is due.
  bool RoundDue() const;
  // Whether nothing of the oldest generation, which is not the current one, can take effect any more.
  bool OldestHasPassed();
  void DropPassedGenerations();
  Task<Done> AwaitDetached(fabric::Op& op);
  // Syncs, reads the registry, gives back what is past its grace. One at a time. kIfNeeded: a client that is
  // offline and waits for nothing does not look.
  // kAndRaise: the epoch is raised even if this client waits for nothing.
  enum class Look : uint8_t { kAlways, kIfNeeded, kAndRaise };
  Task<Done> MoveOn(fabric::Op& op, Look look);
  Task<Done> SyncNode(fabric::Op& op, Node& node, uint64_t epoch, bool raise);
  // ---- presence (presence.cc)
  struct Return;
  bool MayGoOffline() const;
  Task<Done> AwaitOwnPulses(fabric::Op& op);
  // Until nothing is in flight that no coroutine awaits.
  Task<Done> AwaitUnawaited(fabric::Op& op);
  Task<Done> AwaitSwitch(fabric::Op& op) const;
  Task<Done> SyncOffline(fabric::Op& op, bool raise);
  Task<Done> PublishOffline(fabric::Op& op);
  Task<Done> PublishOnline(fabric::Op& op);
  std::vector<Return> Returns();
  // One node's part of coming back.
  Task<Done> ReturnTo(fabric::Op& op, Return& one);
  std::vector<Node*> NodesTakingPart();
  Task<Done> MoveOnAt(fabric::Op& op, Node& node, bool raise);
  // If another client wants room, gives back what it can. `searches`: this one does, too.
  Task<Done> AnswerRoomWanted(fabric::Op& op, bool searches);
  bool OwnsNothing() const;
  // Takes over what dead clients have left, and sweeps; nearly always there is nothing to do.
  Task<Done> RepairAfterDeaths(fabric::Op& op);
  Task<Done> SweepAll(fabric::Op& op);
  // The known number of each node.
  std::vector<uint64_t> CatalogChanges() const;
  // On all nodes. kContended if a client has died, and there is something to sweep first.
  Task<Done> GiveUpMemory(fabric::Op& op);
  Nanos GracePause() const;

  fabric::Client& client_;
  const ClientOptions options_;
  std::vector<std::unique_ptr<Node>> nodes_;
  const std::unique_ptr<Node> nowhere_;  // stands for all nodes that the pool does not have; never joined
  std::deque<Generation> generations_;   // the last one is current; a deque keeps the pins' pointers valid
  uint64_t in_flight_ = 0;
  uint64_t begun_ = 0;
  uint64_t unpinned_waits_ = 0;
  bool online_ = true;
  bool switching_ = false;  // a pulse is on its way that says offline, or one that ends that
  size_t syncing_ = 0;      // syncs under way, while online
  uint64_t tokens_ = 0;
  uint64_t since_round_ = 0;
  Nanos last_round_{0};
  bool sync_requested_ = false;
  bool maintaining_ = false;                  // a MoveOn or more is under way
  uint64_t looks_begun_ = 0;                  // for room; those that fail count, too
  uint64_t looks_ended_ = 0;                  // the number of the last one that has ended well
  std::vector<std::vector<uint64_t>> spare_;  // epochs of generations that are gone, for their memory
  Walk walk_;
};

}  // namespace farside::pool
