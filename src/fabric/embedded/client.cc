#include "fabric/embedded/client.h"

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace farside::fabric::embedded {

EmbeddedClient::EmbeddedClient(Shared& shared, GateRegistry::Registration registration)
    : DirectClient(registration.id, shared.region_bytes, *shared.clock),
      shared_(shared),
      gate_(std::move(registration.gate)) {
  std::vector<Reach> reach;
  for (const std::unique_ptr<Node>& node : shared.nodes) reach.push_back({&node->memory(), gate_.get()});
  SetReach(std::move(reach));
}

EmbeddedClient::~EmbeddedClient() { shared_.gates.Remove(id()); }

std::optional<Error> EmbeddedClient::Call(Verb& verb) {
  Node& node = *shared_.nodes[Index(verb.at.node)];
  const std::string_view request(reinterpret_cast<const char*>(verb.from), verb.size);
  const std::scoped_lock lock(node.cpu());
  Result<std::string> reply = node.handler_memory().Handle(shared_.calls, verb.call, id(), request);
  if (!reply.ok()) return reply.error();
  *verb.reply = std::move(*reply);
  return std::nullopt;
}

// Cuts a client off from this node, and from all others too: they have one gate.
std::optional<Error> EmbeddedClient::Fence(const Verb& verb) {
  const std::shared_ptr<Gate> gate = shared_.gates.Find(static_cast<ClientId>(verb.desired));
  if (gate == nullptr) return std::nullopt;  // it departed, and can do nothing any more
  gate->Close();
  gate->AwaitTurn();
  return std::nullopt;
}

// Threads of one process live and die together, so a line is always finished.
Error EmbeddedClient::Stuck(NodeId) {
  return Error(ErrorCode::kUnavailable, "a line of memory was never finished");
}

}  // namespace farside::fabric::embedded
