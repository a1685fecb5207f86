// The strangers: sockets of a server that are no clients. They come in, only look, or are leaving.
//
// INVARIANT lobby/1: there are at most `most` of them. If one more comes, the oldest of the address that has
// most of them goes. So an address that floods the node evicts only its own sockets, and a peer that says
// Hello at once is a client before its turn to go would come.
//
// Clients are not in the lobby and never have to go, so strangers take nothing of their room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

namespace farside::fabric::tcp {

class Connection;

// Of the thread at the door; `size` from any thread. So no thread that serves clients waits for it.
class Lobby {
 public:
  explicit Lobby(size_t most) : most_(most) {}

  // Returns the connection that has to go for this one (lobby/1), which is not in the lobby any more; null if
  // there was room. `network` is SocketAddress::Network.
  std::shared_ptr<Connection> Enter(std::shared_ptr<Connection> connection, uint64_t network);
  // The connection became a client, or is closed. Does nothing if it is not in the lobby.
  void Leave(const Connection& connection);
  // A connection that has to go for another reason: the oldest of the address that has most. Null if there is
  // none.
  std::shared_ptr<Connection> TakeOldest();
  size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  struct Stranger {
    std::shared_ptr<Connection> connection;
    uint64_t network;
  };
  using Strangers = std::list<Stranger>;

  std::shared_ptr<Connection> Take(Strangers::iterator stranger);
  Strangers::iterator OldestOfMost();

  const size_t most_;
  std::atomic<size_t> size_{0};
  Strangers strangers_;  // the oldest first
  std::unordered_map<const Connection*, Strangers::iterator> places_;
  std::unordered_map<uint64_t, size_t> of_network_;
};

}  // namespace farside::fabric::tcp
