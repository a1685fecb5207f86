// Runs tasks on a client until they have ended: the synchronous form of every operation.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "fabric/client.h"
#include "farside/result.h"
#include "farside/task.h"

namespace farside::fabric {

// Starts `task` and polls `client` until it has ended.
template <class T>
Result<T> Run(Client& client, Task<T> task) {
  task.Start();
  while (!task.done()) {
    if (!client.Poll()) {
      return Error(ErrorCode::kUnavailable, "the operation waits for something that is not in flight");
    }
  }
  return task.TakeResult();
}

// Runs all of them at once, so that their trips overlap; take each one's result afterwards.
template <class T>
Status RunAll(Client& client, std::span<Task<T>> tasks) {
  const size_t before = client.concurrency();
  client.set_concurrency(tasks.size());
  for (Task<T>& task : tasks) task.Start();
  bool progress = true;
  size_t ended = 0;
  while (ended < tasks.size() && progress) {
    if (tasks[ended].done()) {
      ++ended;
    } else {
      progress = client.Poll();
    }
  }
  client.set_concurrency(before);
  if (progress) return OkStatus();
  return Error(ErrorCode::kUnavailable, "an operation waits for something that is not in flight");
}

}  // namespace farside::fabric
