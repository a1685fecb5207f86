#include "farside/result.h"

namespace farside {

std::string_view Name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "kInvalidArgument";
    case ErrorCode::kNotFound: return "kNotFound";
    case ErrorCode::kAlreadyExists: return "kAlreadyExists";
    case ErrorCode::kOutOfMemory: return "kOutOfMemory";
    case ErrorCode::kUnavailable: return "kUnavailable";
    case ErrorCode::kOutcomeUnknown: return "kOutcomeUnknown";
    case ErrorCode::kFenced: return "kFenced";
    case ErrorCode::kContended: return "kContended";
    case ErrorCode::kCorrupt: return "kCorrupt";
    case ErrorCode::kVersionMismatch: return "kVersionMismatch";
    case ErrorCode::kPermissionDenied: return "kPermissionDenied";
    case ErrorCode::kUnsupported: return "kUnsupported";
  }
  return "unknown error code";
}

std::string Error::ToString() const {
  std::string text(Name(code_));
  text += ": ";
  text += message_;
  return text;
}

}  // namespace farside
