// Serves a memory node to clients in other processes of the machine: gives them its memory over a Unix
// socket, answers their Calls and fences, and cleans up after those that die.
//
// One thread waits for the socket, the connections and the processes at their other ends. While nothing
// happens there, it only looks once a second for lines that no client holds. Verbs never come here. That a
// client has died is seen at once, by the end of its connection or of its process: then its half written line
// is completed, what it held is freed, and only then is its slot given to others.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/limited_log.h"
#include "base/log.h"
#include "fabric/memory/served_node.h"
#include "fabric/shm/call_thread.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/listener.h"
#include "fabric/shm/served_client.h"
#include "fabric/shm/shared_memory.h"

namespace farside::fabric::shm {

struct ServerOptions {
  std::string node;            // its name, or the path of its socket; see socket.h
  std::optional<gid_t> group;  // whose members may connect; else only the owner and root
  FencePolicy fence = FencePolicy::kWait;
  uint32_t max_clients = kClientSlots;
  Logger* log = nullptr;         // must outlive the node
  const Clock* clock = nullptr;  // must outlive the node; null: the machine's
};

class Server {
 public:
  // `memory` is what `node` was built over; both must outlive the server. kAlreadyExists if another daemon
  // serves the socket.
  static Result<std::unique_ptr<Server>> Start(memory::ServedNode& node, SharedMemory& memory,
                                               const ServerOptions& options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Closes all gates, so that clients notice at their next trip, and waits a moment for clients in the middle
  // of one: if they died later, no daemon would complete their lines.
  ~Server();

  const std::string& path() const { return listener_.path(); }
  // Clients that have a slot.
  size_t clients() const { return clients_; }

 private:
  struct Connection {
    std::shared_ptr<Channel> channel;
    Peer peer;
    std::shared_ptr<ShmServedClient> client;  // null until the client has introduced itself
    bool cut_off = false;  // it was refused, or broke the rules, and is not listened to any more
    bool leaving = false;  // its end was seen; its lines may have to wait
  };
  using Connections = std::map<uint64_t, Connection>;  // by a number that rises

  Server(memory::ServedNode& node, SharedMemory& memory, const ServerOptions& options, Listener listener);

  // ---- on the control thread
  void Run();
  void Handle(uint64_t event);
  void AcceptSome();
  void Accept(Descriptor socket);
  void DropOldestStranger();
  void HandleMessage(uint64_t number);
  void HandleHello(uint64_t number, std::span<const std::byte> message);
  void HandleRequest(Connection& connection, std::span<const std::byte> message);
  void Welcome(const Connection& connection, uint32_t slot);
  static void Refuse(const Channel& channel, const Error& why);
  // The client breaks the rules: it is served no more, but has its slot until it has closed the connection.
  void CutOff(Connection& connection, std::string_view why);
  void Leave(uint64_t number);
  // Ends leaving clients that have become still. False: some have not.
  bool FinishLeaving();
  void End(Connections::iterator at);
  // Frees lines that no client holds, now and then.
  void FreeStrays();
  // Says how many lines the logs have left out, now and then.
  void ReportLeftOut();

  void Watch(int descriptor, uint64_t event) const;
  void Unwatch(int descriptor) const;

  memory::ServedNode& node_;
  SharedMemory& memory_;
  const uint32_t max_clients_;
  // Lines that processes can cause. Strangers have their own, so that they do not drown those of clients.
  const ShmServedClient::Terms terms_;
  const std::shared_ptr<LimitedLog> stranger_log_;
  const Listener listener_;
  const Descriptor epoll_;
  const Descriptor stop_;  // an eventfd

  Connections connections_;
  uint64_t last_connection_ = 0;
  size_t strangers_ = 0;         // connections without a client
  std::vector<uint32_t> slots_;  // the free ones; the next to be given stands last
  std::vector<bool> holders_;    // which numbers may hold lines, by number
  size_t leaving_ = 0;
  Nanos freed_strays_{};  // when that was done last
  bool out_of_descriptors_ = false;
  std::atomic<size_t> clients_ = 0;
  CallThread calls_;
  std::thread control_;
};

}  // namespace farside::fabric::shm
