// Which backend reaches the nodes of a pool URL that others serve.
#pragma once

#include <memory>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "farside/result.h"
#include "pool/url.h"

namespace farside::pool {

// `url.remote()` must hold. The clock must outlive the fabric; null: the machine's.
Result<std::unique_ptr<fabric::Fabric>> ConnectTo(const PoolUrl& url, const Clock* clock);

}  // namespace farside::pool
