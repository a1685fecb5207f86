// What goes wrong, in words.
#pragma once

#include <string_view>

#include "farside/result.h"
#include "index/chime/layout.h"

namespace farside::index::chime {

// Whether the client is cut off: nothing that it holds can be given back by itself.
inline bool IsBroken(const Error& error) {
  return error.code() == ErrorCode::kOutcomeUnknown || error.code() == ErrorCode::kFenced ||
         error.code() == ErrorCode::kUnavailable;
}

// "the node at line 0x40 of node 1 ...".
Error Damaged(NodePtr at, std::string_view what);
Error Contended(std::string_view what);

}  // namespace farside::index::chime
