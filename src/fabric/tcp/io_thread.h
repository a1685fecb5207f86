// A thread of a server: a loop over the sockets of its connections.
//
// One thread stands at the door: it accepts connections, has all strangers, and hands those that are clients
// to the threads that serve them. It gets a client back when the client leaves. Its priority is lower than
// that of the others, so strangers take what time the clients leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "fabric/tcp/connection.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/mailbox.h"
#include "fabric/tcp/server_state.h"
#include "fabric/tcp/wire.h"
#include "farside/result.h"

namespace farside::fabric::tcp {

class IoThread {
 public:
  explicit IoThread(ServerState& server) : server_(server), memory_(server.node.NewThreadMemory()) {}
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  Status Open();
  // Makes this thread the one at the door, for the threads of these mailboxes.
  Status StandAtDoor(Descriptor listener, std::vector<std::shared_ptr<Mailbox>> serving);
  // Makes this thread serve clients.
  void Serve(std::shared_ptr<Mailbox> door) { door_ = std::move(door); }
  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Join() { thread_.join(); }

  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

 private:
  void Run();
  // Both say whether a client had sent something, other than more of a large request.
  bool LookAtHot();
  bool LookAtAll();
  // For epoll: -1 is until something happens.
  int SleepMilliseconds() const;
  bool SpinningIsFutile() const;
  void ReadLetters();
  void AcceptSome();
  void PauseAccepting(int error);
  void LetIn(Descriptor socket, const SocketAddress& peer);
  void Adopt(const std::shared_ptr<Connection>& connection);
  void EnterLobby(const std::shared_ptr<Connection>& connection);
  using Turns = std::deque<std::shared_ptr<Connection>>;
  // Gives some of those that have more to do a turn, for a while.
  void GoOnWithSome();
  // The same for one that receives a large request, unless small ones need the time. `traffic`: one of those
  // came just now.
  void GoOnWithLarge(bool traffic);
  // After something was done with a connection: what to wait for next, or the end of it here.
  void UpdateInterest(Connection& connection, bool again);
  // To the thread that it belongs to now.
  void HandOver(Connection& connection);
  bool is_door() const { return door_ == nullptr; }
  void CheckDeadlines();
  void StopAll();

  ServerState& server_;
  Descriptor epoll_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::thread thread_;

  // ---- of the thread alone
  const std::unique_ptr<memory::ThreadMemory> memory_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  Turns again_;           // there is more to do for them at once
  Turns large_;           // and for them, more of a large request
  Nanos large_again_{0};  // while small requests come closely, not before this time
  std::vector<Letter> letters_;
  wire::Frame frame_;
  bool stopping_ = false;
  size_t with_deadline_ = 0;  // connections, as of the last look
  Nanos last_look_{0};

  bool spinning_ = false;
  uint32_t looks_in_a_row_ = 0;
  std::vector<Connection*> hot_;  // those that spoke last
  uint32_t hot_looks_ = 0;
  Nanos last_traffic_{0};

  std::shared_ptr<Mailbox> door_;  // null: this is the thread at the door

  // ---- of the thread at the door
  Descriptor listener_;
  bool accepting_ = false;
  Nanos accept_again_{0};
  std::vector<std::shared_ptr<Mailbox>> serving_;
  size_t next_ = 0;
};

}  // namespace farside::fabric::tcp
