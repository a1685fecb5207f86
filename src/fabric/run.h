// Runs tasks on a client until they have ended: the synchronous form of every operation.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "fabric/client.h"
#include "farside/result.h"
#include "farside/run_tasks.h"
#include "farside/task.h"

namespace farside::fabric {

// A task is suspended, and nothing is in flight that could resume it.
Error NothingInFlight();

// Starts `task` and polls `client` until it has ended.
template <class T>
Result<T> Run(Client& client, Task<T> task) {
  if (!RunTasks(std::span(&task, 1), [&client] { return client.Poll(); })) return NothingInFlight();
  return task.TakeResult();
}

// The same for a task that may have to wait for other clients. `between` is called between two polls; if it
// returns an error, the run ends with that error, and the task is abandoned.
template <class T, class Between>
Result<T> Run(Client& client, Task<T> task, Between between) {
  Status waited = OkStatus();
  bool first = true;
  const bool ended = RunTasks(std::span(&task, 1), [&] {
    if (!std::exchange(first, false)) waited = between();
    return waited.ok() && client.Poll();
  });
  if (!waited.ok()) return waited.error();
  if (!ended) return NothingInFlight();
  return task.TakeResult();
}

// Runs all tasks at once, so that their trips overlap. Take each one's result afterwards.
template <class T>
Status RunAll(Client& client, std::span<Task<T>> tasks) {
  const size_t before = client.concurrency();
  client.set_concurrency(tasks.size());
  const bool ended = RunTasks(tasks, [&client] { return client.Poll(); });
  client.set_concurrency(before);
  if (!ended) return NothingInFlight();
  return OkStatus();
}

}  // namespace farside::fabric
