// What a call through a public handle does first. A handle that was moved from has nothing behind it, and in
// a child of fork a handle is dead: what is behind it must not be used, or even destroyed, because memory,
// connections and threads belong to the parent.
#pragma once

#include <string_view>

#include "base/fork_guard.h"
#include "farside/result.h"
#include "farside/table.h"
#include "farside/task.h"
#include "store/session_state.h"

namespace farside::store {

// Ends what handles share, when the last of them ends; not in a child of fork.
struct EndUnlessForked {
  template <class State>
  void operator()(State* state) const {
    if (state->forked()) return ForkGuard::KeepForever(state);
    delete state;
  }
};

// `what` is "pool", "table", "session" or "task".
Error MovedFrom(std::string_view what);

inline bool HaveStates(const SessionState* session, const Table& table) {
  return session != nullptr && table.has_state();
}
// Why a call cannot begin, if HaveStates is false.
Error WithoutState(const SessionState* session);
// The same as a status; also if this process is a fork.
Status CheckHandles(const SessionState* session, const Table& table);

// One operation (requests.h).
template <class Request>
Result<typename Request::Answer> Perform(SessionState* session, const Table& table, const Request& request) {
  if (!HaveStates(session, table)) [[unlikely]]
    return WithoutState(session);
  return session->Perform(table.state(), request);
}

// A task that ends with an error.
template <class T>
Task<T> Refuse(Error error) {
  co_return error;
}

// The same, as a task that runs in the session.
template <class Request>
Task<typename Request::Answer> PerformTask(SessionState* session, const Table& table,
                                           const Request& request) {
  if (!HaveStates(session, table)) return Refuse<typename Request::Answer>(WithoutState(session));
  return session->PerformTask(table.state(), request);
}

}  // namespace farside::store
