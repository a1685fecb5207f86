#include "farside/result.h"

#include <cstdio>
#include <cstdlib>
#include <ostream>

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

std::ostream& operator<<(std::ostream& out, const Error& error) {
  return out << Name(error.code()) << ": " << error.message();
}

namespace internal {

void EndWithoutValue(const Error& error) noexcept {
  const std::string text = error.ToString();
  std::fprintf(stderr, "farside: the value of a failed Result was used: %s\n", text.c_str());
  std::abort();
}

void EndWithoutError() noexcept {
  std::fputs("farside: the error of a Result that has a value was used\n", stderr);
  std::abort();
}

}  // namespace internal

}  // namespace farside
