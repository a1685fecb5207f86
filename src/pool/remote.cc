#include "pool/remote.h"

namespace farside::pool {

Result<std::unique_ptr<fabric::Fabric>> ConnectTo(const PoolUrl&, const Clock*) {
  return Error(ErrorCode::kUnsupported, "nodes that others serve are not in this version");
}

}  // namespace farside::pool
