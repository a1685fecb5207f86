// The run loop of every executor of tasks: Session::Run and RunAll, and their counterparts inside the
// library.
#pragma once

#include <span>

#include "farside/task.h"

namespace farside {

// Starts the tasks, then calls `poll`, which makes progress, until all of them have ended. False: `poll`
// returned false, and the tasks that have not ended stay suspended.
template <class T, class Poll>
bool RunTasks(std::span<Task<T>> tasks, Poll poll) {
  for (Task<T>& task : tasks) task.Start();
  for (Task<T>& task : tasks) {
    while (!task.done()) {
      if (!poll()) return false;
    }
  }
  return true;
}

}  // namespace farside
