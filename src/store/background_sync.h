// What a session does although none of its operations asks for it: beside the tasks of its owner, or by the
// keeper while the owner does not use the session.
#pragma once

#include <atomic>
#include <optional>

#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "store/registration.h"

namespace farside::store {

enum class Errand : uint8_t {
  kSync,    // a sync, and what is due after it
  kRest,    // goes offline; other clients do not wait for the session any more
  kDisown,  // gives up its chunks, and goes offline
};
// True: the session has given up its chunks. One that rests does so, too, if another client wants room.
// `wanted`: the owner waits for the session.
Task<bool> Run(fabric::Op& op, pool::PoolClient& pool, Errand errand,
               const std::atomic<bool>* wanted = nullptr);

class BackgroundSync {
 public:
  // Starts it. Poll the registration's client until done().
  explicit BackgroundSync(Registration& registration, Errand errand = Errand::kSync,
                          const std::atomic<bool>* wanted = nullptr);
  BackgroundSync(const BackgroundSync&) = delete;
  BackgroundSync& operator=(const BackgroundSync&) = delete;

  bool done() const { return sync_.done(); }
  // From now on no poll of the client sleeps for more than a moment. The keeper polls many sessions in turn.
  void KeepPollsShort();
  // Counts it as what it was. To be called once, when it is done. True: as Run.
  Result<bool> TakeResult();

  Registration& registration() { return registration_; }
  Errand errand() const { return errand_; }

 private:
  Registration& registration_;
  const Errand errand_;
  fabric::Op op_;
  Task<bool> sync_;
  std::optional<Task<Done>> tick_;
};

}  // namespace farside::store
