// A connection of a node without a thread: a test advances it, and speaks for its peer.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/descriptor.h"
#include "fabric/tcp/connection.h"
#include "fabric/tcp/server.h"
#include "fabric/tcp/server_state.h"
#include "tests/fabric/tcp/loopback.h"
#include "tests/fabric/tcp/world.h"

namespace farside::fabric::tcp {

class LoneConnection {
 public:
  LoneConnection(Transport transport, const ServerOptions& options)
      : state_(world_.node(), options, world_.log().logger()) {
    state_.open.fetch_add(1);
    connection_ = std::make_shared<Connection>(std::move(transport), SocketAddress{}, state_);
    connection_->ArriveAt(*memory_, mailbox_);
  }
  ~LoneConnection() {
    connection_->Close();
    mailbox_->Close();  // there is no thread to take the letters, which hold the connection
  }

  Connection* operator->() { return connection_.get(); }
  ServerState& state() { return state_; }
  bool Advance() { return connection_->Advance(frame_); }

 private:
  TestNode world_{uint64_t{1} << 20};
  ServerState state_;
  const std::unique_ptr<memory::ThreadMemory> memory_ = world_.node().NewThreadMemory();
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::shared_ptr<Connection> connection_;
  wire::Frame frame_;
};

// Both ends of a connection over loopback.
struct SocketPair {
  SocketPair() {
    const int large = 1 << 20;
    setsockopt(listener.fd(), SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
    peer = listener.Connect();
    PrepareSocket(peer.get(), listener.where());  // small pieces are sent at once
    node = listener.Accept(SOCK_NONBLOCK);
  }
  LoopbackListener listener;
  Descriptor peer;
  Descriptor node;
};

// One whose peer has a plain socket.
class PlainConnection : public LoneConnection {
 public:
  explicit PlainConnection(const ServerOptions& options = OneThread())
      : PlainConnection(SocketPair(), options) {}

  // When it returns, the connection can read all of it: the kernel may deliver it a moment after it was sent.
  void Send(const Bytes& bytes) {
    const int before = Unread();
    EXPECT_EQ(send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    while (!testing::Test::HasFailure() && Unread() < before + static_cast<int>(bytes.size()))
      std::this_thread::yield();
  }
  // Sends as much as the sockets take.
  void Fill() {
    fcntl(peer_.get(), F_SETFL, fcntl(peer_.get(), F_GETFL) | O_NONBLOCK);
    const Bytes some(16 * 1024);
    while (send(peer_.get(), some.data(), some.size(), MSG_NOSIGNAL) > 0) continue;
  }
  // As little as a system allows on the way to the peer, which reads nothing.
  void NarrowTheWayBack() {
    const int small = 1;
    setsockopt((*this)->fd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    setsockopt(peer_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  }
  int Unread() {
    int unread = 0;
    EXPECT_EQ(ioctl((*this)->fd(), FIONREAD, &unread), 0);
    return unread;
  }
  // Until there is nothing more to read, or the connection does not read it.
  void AdvanceToRest() {
    for (int before = 0; Advance() || Unread() != before;) before = Unread();
  }

 private:
  PlainConnection(SocketPair sockets, const ServerOptions& options)
      : LoneConnection(Transport(std::move(sockets.node)), options), peer_(std::move(sockets.peer)) {}

  Descriptor peer_;
};

// One whose client was admitted.
class ServedConnection : public PlainConnection {
 public:
  explicit ServedConnection(const ServerOptions& options) : PlainConnection(options) {
    Send(BytesOf(HelloAs(5)));
    Advance();
    EXPECT_EQ((*this)->state(), Connection::State::kServing);
  }
};

}  // namespace farside::fabric::tcp
