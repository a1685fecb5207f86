#include "fabric/service.h"

#include <fmt/format.h>

namespace farside::fabric {

Result<std::string> CallTable::Handle(CallId call, NodeMemory& memory, ClientId caller,
                                      std::string_view request) const {
  const auto found = handlers_.find(call);
  if (found == handlers_.end()) {
    return Error(
        ErrorCode::kUnsupported,
        fmt::format("this node has no handler for operation {} of engine {}: is it of an older version?",
                    call.operation, call.engine));
  }
  return found->second(memory, caller, request);
}

}  // namespace farside::fabric
