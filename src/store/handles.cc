#include "store/handles.h"

#include <fmt/format.h>

namespace farside::store {

Error MovedFrom(std::string_view what) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("this {0} was moved from; use the {0} that it was moved to", what));
}

Error WithoutState(const SessionState* session) {
  return MovedFrom(session == nullptr ? "session" : "table");
}

Status CheckHandles(const SessionState* session, const Table& table) {
  if (!HaveStates(session, table)) return WithoutState(session);
  if (session->forked()) return ForkGuard::Refusal();
  return OkStatus();
}

}  // namespace farside::store
