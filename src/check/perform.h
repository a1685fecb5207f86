// A recorded call, carried out on an index.
#pragma once

#include "check/history.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"

namespace farside::check {

// The bytes that the call points to must outlive the task.
Task<Outcome> Perform(index::Index& index, fabric::Op& op, Call call);

}  // namespace farside::check
