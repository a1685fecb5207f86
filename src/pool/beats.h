// Signs of life during something that may take longer than a lease, such as a walk through a large table.
//
//   Beats beats(pool);
//   for (...) {
//     ... one step, much shorter than a lease ...
//     if (beats.Due()) co_await beats.Beat(op);
//   }
//
// A client that walks in silence is taken for dead over it. Its memory then has to be swept by another
// client, which walks in silence, too.
#pragma once

#include "base/clock.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/client.h"

namespace farside::pool {

class Beats {
 public:
  // The client has synced a moment ago, or another Beats looks after it meanwhile.
  explicit Beats(PoolClient& pool);

  // A glance at the clock.
  bool Due() const;
  // Syncs. The executor gets a turn, too, which it may need for other clients of the process: on fabrics that
  // complete at once, a walk does not return to it otherwise.
  Task<Done> Beat(fabric::Op& op);

 private:
  PoolClient& pool_;
  const Nanos interval_;
  Nanos last_;
};

}  // namespace farside::pool
