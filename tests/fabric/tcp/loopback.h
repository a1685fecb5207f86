// A socket that listens on this machine, for tests that speak for one end of a connection or for both.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "base/descriptor.h"
#include "fabric/tcp/endpoint.h"

namespace farside::fabric::tcp {

// Listens at a port that the system chooses.
class LoopbackListener {
 public:
  LoopbackListener() {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&where_.storage);
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    where_.bytes = sizeof(sockaddr_in);
    EXPECT_EQ(bind(fd(), where_.get(), where_.bytes), 0);
    EXPECT_EQ(listen(fd(), 16), 0);
    EXPECT_EQ(getsockname(fd(), where_.get(), &where_.bytes), 0);
  }

  int fd() const { return socket_.get(); }
  const SocketAddress& where() const { return where_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(where_.port()); }

  Descriptor Connect() const {
    Descriptor peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(peer.get(), where_.get(), where_.bytes), 0);
    return peer;
  }
  // Waits for a peer.
  Descriptor Accept(int flags = 0) const {
    Descriptor accepted(accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | flags));
    EXPECT_TRUE(accepted.open());
    return accepted;
  }

 private:
  const Descriptor socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  SocketAddress where_;
};

}  // namespace farside::fabric::tcp
