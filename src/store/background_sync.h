// A sync that a session makes although none of its operations asks for it: beside the tasks of its owner, or
// by the keeper while the owner does not use the session.
#pragma once

#include <optional>

#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "store/registration.h"

namespace farside::store {

class BackgroundSync {
 public:
  // Starts it. Poll the registration's client until done().
  explicit BackgroundSync(Registration& registration);
  BackgroundSync(const BackgroundSync&) = delete;
  BackgroundSync& operator=(const BackgroundSync&) = delete;

  bool done() const { return sync_.done(); }
  // From now on no poll of the client sleeps for more than a moment. The keeper polls many sessions in turn.
  void KeepPollsShort();
  // Counts it as what it was. To be called once, when it is done.
  Status TakeResult();

  Registration& registration() { return registration_; }

 private:
  Registration& registration_;
  fabric::Op op_;
  Task<Done> sync_;
  std::optional<Task<Done>> tick_;
};

}  // namespace farside::store
