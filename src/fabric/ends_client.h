// After which errors a client is of no more use.
#pragma once

#include "farside/result.h"

namespace farside::fabric {

// Whether a client can do nothing more for an operation that ended with this error: it has lost a completion
// or was fenced, so none of its verbs takes effect any more (fabric/24); or a node that the operation needs
// is out of its reach (Client::Reaches). Only a new client goes on.
inline bool EndsClient(const Error& error) {
  return error.code() == ErrorCode::kOutcomeUnknown || error.code() == ErrorCode::kFenced ||
         error.code() == ErrorCode::kUnavailable;
}

}  // namespace farside::fabric
