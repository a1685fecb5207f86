// Result<T>: a value, or an error that says what happened and what to do about it.
//
// A code exists only where a caller would act differently. A missing key is not an error, but one of the
// answers that an operation may give.
//
// Check ok() before the value is used. A program that takes the value of an error ends, in every build, with
// the error on stderr.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace farside {

enum class ErrorCode {
  kInvalidArgument,   // the caller passed something that can never work; fix the call
  kNotFound,          // a table, a pool or a file that was named does not exist
  kAlreadyExists,     // the name is taken
  kOutOfMemory,       // far memory is full; nothing was changed
  kUnavailable,       // a node cannot be reached; nothing was changed; reconnect and retry
  kOutcomeUnknown,    // the completion of a write was lost; it may or may not have happened
  kFenced,            // this client was declared dead and cut off; nothing was changed; register anew
  kContended,         // a bounded number of attempts was used up; nothing was changed; retry later
  kCorrupt,           // far memory holds bytes that no correct client wrote
  kVersionMismatch,   // the bytes are of another layout version; export and import
  kPermissionDenied,  // this client may not do that
  kUnsupported,       // this backend or engine cannot do that
};

// The name of a code as it is spelled here: "kOutOfMemory".
std::string_view Name(ErrorCode code);

class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "kOutOfMemory: node 2 has 0 of 1024 chunks free; ..."
  std::string ToString() const;

 private:
  ErrorCode code_;
  std::string message_;
};

// As ToString has it.
std::ostream& operator<<(std::ostream& out, const Error& error);

namespace internal {

// End the program, with one line on stderr: value() of a Result that has an error, error() of one that has
// none.
[[noreturn, gnu::cold, gnu::noinline]] void EndWithoutValue(const Error& error) noexcept;
[[noreturn, gnu::cold, gnu::noinline]] void EndWithoutError() noexcept;

}  // namespace internal

// The value of an operation that has nothing to say beyond "done".
struct Done {
  friend bool operator==(Done, Done) = default;
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    if (!ok()) [[unlikely]]
      internal::EndWithoutValue(*std::get_if<1>(&state_));
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    if (!ok()) [[unlikely]]
      internal::EndWithoutValue(*std::get_if<1>(&state_));
    return *std::get_if<0>(&state_);
  }
  T&& value() && { return std::move(value()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    if (ok()) [[unlikely]]
      internal::EndWithoutError();
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<Done>;
inline Status OkStatus() { return Done{}; }

}  // namespace farside
