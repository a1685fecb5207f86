// A thread of a server: a loop over the sockets of its connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
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
  // Makes this thread accept connections and deal them out to `all`, of which it is one.
  Status Accept(Descriptor listener, std::vector<std::shared_ptr<Mailbox>> all);
  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Join() { thread_.join(); }

  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

 private:
  void Run();
  // Both say whether a client had sent something.
  bool LookAtHot();
  bool LookAtAll();
  // For epoll: -1 is until something happens.
  int SleepMilliseconds() const;
  bool SpinningIsFutile() const;
  void ReadLetters();
  void AcceptSome();
  void PauseAccepting(int error);
  void Deal(Descriptor socket, const SocketAddress& peer);
  void Adopt(const std::shared_ptr<Connection>& connection);
  // After something was done with a connection: what to wait for next, or the end of it.
  void UpdateInterest(Connection& connection, bool again);
  void CheckDeadlines();
  void StopAll();

  ServerState& server_;
  Descriptor epoll_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::thread thread_;

  // ---- of the thread alone
  const std::unique_ptr<memory::ThreadMemory> memory_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> again_;  // there is more to do for them at once
  std::vector<std::shared_ptr<Connection>> now_;
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

  Descriptor listener_;  // of one thread only
  bool accepting_ = false;
  Nanos accept_again_{0};
  std::vector<std::shared_ptr<Mailbox>> all_;
  size_t next_ = 0;
};

}  // namespace farside::fabric::tcp
