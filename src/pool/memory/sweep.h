// Sweep: finds the blocks that dead clients have leaked in the chunks of this client.
//
//   Sweep sweep(allocator);                                    // at a moment without operations in flight
//   co_await walk(sweep);                                      // marks everything reachable, on all tables
//   co_await membership.Sync(...);
//   sweep.WalkEnded(membership.known_epoch());
//   do { sync, raising the epoch; read the pulses of all clients; reclaim } while (!sweep.Ready(view));
//   co_await sweep.Finish(op);
//
// Operations may run from the construction on. See sweep.cc for why this frees nothing that is in use.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "pool/members/membership.h"
#include "pool/memory/allocator.h"
#include "pool/memory/reach.h"

namespace farside::pool {

class Sweep final : public Reach {
 public:
  // Notes every block that is handed out. No operation of this client may be in flight. At most one sweep
  // at a time.
  explicit Sweep(Allocator& allocator);
  ~Sweep() override;
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  void Mark(fabric::FarAddr block, uint64_t bytes) override;
  // `epoch` was read by a Sync that was posted after the walk had ended.
  void WalkEnded(uint64_t epoch);
  // True if no client can give back, or still look at, what was unlinked before the walk had ended.
  bool Ready(const RegistryView& view) const;
  // Frees what is leaked.
  Task<Done> Finish(fabric::Op& op);

 private:
  Task<Done> HarvestSuspects(fabric::Op& op);
  Task<Done> FreeSuspectExtents(fabric::Op& op);

  Allocator& allocator_;
  const uint64_t deaths_;       // when it began
  const uint64_t takeovers_;    // likewise
  std::vector<Owner> adopted_;  // likewise
  uint64_t walk_ended_ = 0;
  bool ended_ = false;
};

}  // namespace farside::pool
