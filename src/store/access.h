// What is behind the public handles, for tests and tools of this repository.
#pragma once

#include "farside/session.h"
#include "store/session_state.h"

namespace farside::store {

struct Access {
  static SessionState& StateOf(farside::Session& session) { return *session.state_; }
};

}  // namespace farside::store
