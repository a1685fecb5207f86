#include "fabric/tcp/lobby.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/tcp/connection.h"
#include "fabric/tcp/server_state.h"
#include "tests/fabric/tcp/world.h"

namespace farside::fabric::tcp {
namespace {

TEST(TcpLobby, OldestOfTheAddressWithMostGoes) {
  // Given a lobby for four, with three connections of network 1 and one of network 2, which is the oldest.
  ServerOptions options = OneThread();
  TestNode world;
  ServerState state(world.node(), options, world.log().logger());
  const auto make = [&] { return std::make_shared<Connection>(Transport(), SocketAddress{}, state); };
  std::vector<std::shared_ptr<Connection>> all;
  for (int i = 0; i < 8; ++i) all.push_back(make());
  Lobby lobby(4);
  EXPECT_EQ(lobby.Enter(all[0], 2), nullptr);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(lobby.Enter(all[i], 1), nullptr);
  // When one more comes of network 1, and one of network 3. Expect that each time the oldest connection of
  // network 1 goes.
  EXPECT_EQ(lobby.Enter(all[4], 1), all[1]);
  EXPECT_EQ(lobby.Enter(all[5], 3), all[2]);
  EXPECT_EQ(lobby.size(), 4u);
  // When a connection leaves, and leaves again. Expect that there is room for one.
  lobby.Leave(*all[3]);
  lobby.Leave(*all[3]);
  EXPECT_EQ(lobby.Enter(all[6], 4), nullptr);
  // When each network has one connection. Expect that the oldest of all goes.
  EXPECT_EQ(lobby.Enter(all[7], 5), all[0]);
  EXPECT_EQ(lobby.TakeOldest(), all[4]);
  EXPECT_EQ(lobby.size(), 3u);
}

}  // namespace
}  // namespace farside::fabric::tcp
