// The embedded fabric: memory nodes in this process, and clients that reach them by loads and stores.
//
// The default of the library and of its tests, and the fastest store for a single process. Every promise of
// docs/memory-model.md holds between threads; a fenced client is refused by its own gate
// (fabric/memory/gate.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "fabric/embedded/client.h"
#include "fabric/fabric.h"
#include "fabric/memory/medium.h"
#include "fabric/memory/region.h"

namespace farside::fabric::embedded {

struct Options {
  std::vector<uint64_t> region_bytes;  // one per node; whole lines
  const Clock* clock = nullptr;        // must outlive the fabric; null: the machine's
};

class EmbeddedFabric final : public Fabric {
 public:
  // The regions are zero, and end with the fabric.
  static Result<std::unique_ptr<EmbeddedFabric>> Open(const Options& options);
  // Over regions that may hold something already, one per node; whole lines.
  // `media` are empty, or one for each region: null where what handlers flush shall have no effect.
  static Result<std::unique_ptr<EmbeddedFabric>> Serve(
      std::vector<memory::Region> regions, const Clock* clock = nullptr,
      std::vector<std::unique_ptr<memory::Medium>> media = {});

  std::string_view name() const override { return "embedded"; }
  std::span<const uint64_t> region_bytes() const override { return shared_.region_bytes; }
  // Safe from any thread. The client belongs to the thread that uses it.
  Result<std::unique_ptr<Client>> Connect() override;
  FlushCounts flushed() const override;

  // The handlers of every node. Fill it before the first Call.
  CallTable& calls() { return shared_.calls; }
  // A region as its node's CPU sees it.
  NodeMemory& memory(NodeId node) { return shared_.nodes[Index(node)]->memory(); }

 private:
  EmbeddedFabric() = default;

  SteadyClock steady_clock_;
  Shared shared_;
};

}  // namespace farside::fabric::embedded
