// For a task that is destroyed on the way, with others whose changes it carries (key_queue.h): what came of
// them is unknown, and they are told so. If nothing can have come of them, they wait for their own turns
// again.
#pragma once

#include "farside/result.h"
#include "index/kit/change_queue.h"
#include "index/kit/draft.h"

namespace farside::index {

class AbandonGuard {
 public:
  // Something may have come of the change at any moment; or only if its block may be published.
  explicit AbandonGuard(ChangeTicket& ticket) : ticket_(ticket) {}
  AbandonGuard(ChangeTicket& ticket, const Draft& draft) : ticket_(ticket), draft_(&draft) {}
  AbandonGuard(const AbandonGuard&) = delete;
  AbandonGuard& operator=(const AbandonGuard&) = delete;
  ~AbandonGuard() {
    if (!ticket_.has_passengers() || (draft_ != nullptr && !draft_->may_be_published())) return;
    ticket_.Complete(
        Error(ErrorCode::kOutcomeUnknown,
              "the operation was joined to another one on the same key, which was given up on the way"));
  }

 private:
  ChangeTicket& ticket_;
  const Draft* const draft_ = nullptr;
};

}  // namespace farside::index
