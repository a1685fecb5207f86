#include "fabric/tcp/lobby.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fabric/tcp/connection.h"

namespace farside::fabric::tcp {

std::shared_ptr<Connection> Lobby::Enter(std::shared_ptr<Connection> connection, uint64_t network) {
  const Connection* const key = connection.get();
  strangers_.push_back({std::move(connection), network});
  places_.emplace(key, std::prev(strangers_.end()));
  ++of_network_[network];
  size_.store(strangers_.size(), std::memory_order_relaxed);
  return strangers_.size() <= most_ ? nullptr : Take(OldestOfMost());
}

void Lobby::Leave(const Connection& connection) {
  const auto place = places_.find(&connection);
  if (place != places_.end()) Take(place->second);
}

std::shared_ptr<Connection> Lobby::TakeOldest() {
  return strangers_.empty() ? nullptr : Take(OldestOfMost());
}

std::shared_ptr<Connection> Lobby::Take(Strangers::iterator stranger) {
  const auto network = of_network_.find(stranger->network);
  if (--network->second == 0) of_network_.erase(network);
  std::shared_ptr<Connection> connection = std::move(stranger->connection);
  places_.erase(connection.get());
  strangers_.erase(stranger);
  size_.store(strangers_.size(), std::memory_order_relaxed);
  return connection;
}

Lobby::Strangers::iterator Lobby::OldestOfMost() {
  size_t most = 0;
  for (const auto& [network, count] : of_network_) most = std::max(most, count);
  return std::find_if(strangers_.begin(), strangers_.end(),
                      [&](const Stranger& stranger) { return of_network_.at(stranger.network) == most; });
}

}  // namespace farside::fabric::tcp
