#include "fabric/tcp/client_limits.h"

#include <fmt/format.h>

namespace farside::fabric::tcp {

Status ClientLimits::Come(uint64_t network) {
  const std::scoped_lock lock(mutex_);
  if (clients_ >= most_) {
    return Error(
        ErrorCode::kUnavailable,
        fmt::format("it serves {} clients already, which is its limit; close some, or raise the limit",
                    most_));
  }
  size_t& of_this = of_network_[network];
  if (of_this >= most_of_address_) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("it serves {} clients of this address already, which is its limit for one "
                             "address; close some, or raise the limit",
                             most_of_address_));
  }
  ++clients_;
  ++of_this;
  return OkStatus();
}

void ClientLimits::Leave(uint64_t network) {
  const std::scoped_lock lock(mutex_);
  --clients_;
  const auto found = of_network_.find(network);
  if (--found->second == 0) of_network_.erase(found);
}

}  // namespace farside::fabric::tcp
