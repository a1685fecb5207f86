// A fabric: the memory nodes that clients reach with one-sided verbs, by one backend.
//
// What every backend promises is written in docs/memory-model.md and stated as tests in
// tests/fabric/conformance/; how to add one, in docs/add-a-backend.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "fabric/client.h"
#include "fabric/service.h"
#include "farside/result.h"

namespace farside::fabric {

class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual std::string_view name() const = 0;
  // The size of every node's region, in the order of the nodes.
  virtual std::span<const uint64_t> region_bytes() const = 0;
  // A new client. It must not outlive the fabric.
  virtual Result<std::unique_ptr<Client>> Connect() = 0;
  // What handlers of all nodes have made durable so far. Nothing if the nodes are in other processes. Safe
  // from any thread.
  virtual FlushCounts flushed() const { return {}; }
};

}  // namespace farside::fabric
