// Which backend reaches the nodes of a pool URL that others serve.
#pragma once

#include <memory>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "farside/result.h"
#include "pool/region/url.h"

namespace farside::pool {

// `url.remote()` must hold. A node that owes an answer and is silent for a third of `lease` is given up, so
// that a waiting client still has the time to give signs of life at the other nodes. The clock must outlive
// the fabric; null: the machine's.
Result<std::unique_ptr<fabric::Fabric>> ConnectTo(const PoolUrl& url, Nanos lease, const Clock* clock);

}  // namespace farside::pool
