// The shm fabric: memory nodes that daemons on this machine serve, and clients that map their regions and
// reach them by loads, stores and the processor's atomics. The daemons do nothing for one-sided verbs.
//
//   auto fabric = ShmFabric::Open({.nodes = {"a", "/run/farside/b.sock"}});
//
// Every promise of docs/memory-model.md holds between processes, also if one of them is killed at any
// instruction (fabric/memory/line_memory.h), and for fences (client.h). All processes that map a region trust
// each other.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fork_guard.h"
#include "base/random.h"
#include "fabric/fabric.h"
#include "fabric/memory/served_node.h"
#include "fabric/shm/client.h"
#include "fabric/shm/mapping.h"

namespace farside::fabric::shm {

struct Options {
  std::vector<std::string> nodes;  // names or paths of sockets; see socket.h
  const Clock* clock = nullptr;    // must outlive the fabric; null: the machine's
  uint64_t seed = 0;               // of the ids that clients try; 0: drawn by the kernel
};

class ShmFabric final : public Fabric {
 public:
  // Asks every node for its memory. The size and the id of it stay what they are now.
  static Result<std::unique_ptr<ShmFabric>> Open(const Options& options);

  std::string_view name() const override { return "shm"; }
  std::span<const uint64_t> region_bytes() const override { return region_bytes_; }
  // Safe from any thread. The client belongs to the thread that uses it. kUnavailable if a node has other
  // memory than when the fabric was opened.
  Result<std::unique_ptr<Client>> Connect() override;

  // Of the nodes, in their order.
  std::span<const memory::RegionId> region_ids() const { return region_ids_; }

 private:
  struct Node {
    std::string name;
    std::string path;  // of the socket
    std::weak_ptr<Mapping> mapping;
  };

  explicit ShmFabric(const Options& options);

  Result<std::unique_ptr<Link>> Introduce(size_t node, ClientId id);
  Result<std::shared_ptr<Mapping>> MappingOf(size_t node, const Welcome& welcome, const Descriptor& control,
                                             const Descriptor& region);

  SteadyClock steady_clock_;
  const Clock* const clock_;
  const ForkGuard guard_;
  std::vector<uint64_t> region_bytes_;
  std::vector<memory::RegionId> region_ids_;

  std::mutex mutex_;  // of what follows
  std::vector<Node> nodes_;
  Random random_;
};

}  // namespace farside::fabric::shm
