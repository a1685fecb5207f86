// A client of the embedded fabric: it executes its verbs itself (fabric/memory/direct_client.h), and has one
// gate for all nodes, since a client that was fenced anywhere is broken for good.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "fabric/embedded/gate_registry.h"
#include "fabric/embedded/node.h"
#include "fabric/memory/direct_client.h"
#include "fabric/service.h"

namespace farside::fabric::embedded {

// What all clients of a fabric share. Its nodes and its clock do not change once clients exist.
struct Shared {
  std::vector<uint64_t> region_bytes;  // of each node
  std::vector<std::unique_ptr<Node>> nodes;
  CallTable calls;
  const Clock* clock = nullptr;
  GateRegistry gates;
};

class EmbeddedClient final : public memory::DirectClient {
 public:
  // `shared` must outlive the client.
  EmbeddedClient(Shared& shared, GateRegistry::Registration registration);
  ~EmbeddedClient() override;

 private:
  std::optional<Error> Call(Verb& verb) override;
  std::optional<Error> Fence(const Verb& verb) override;
  Error Closed(NodeId) override { return Fenced(); }
  Error Stuck(NodeId node) override;

  Shared& shared_;
  const std::shared_ptr<Gate> gate_;
};

}  // namespace farside::fabric::embedded
