#include "fabric/run.h"

namespace farside::fabric {

Error NothingInFlight() {
  return Error(ErrorCode::kUnavailable, "the operation waits for something that is not in flight");
}

}  // namespace farside::fabric
