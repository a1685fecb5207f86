// For a task that is destroyed on the way, with others whose changes it carries (key_turns.h): what came of them is unknown, and
// they are told so. If nothing can have come of them, they wait for their own turns again.
#pragma once

#include "farside/result.h"
#include "index/kit/draft.h"
#include "index/kit/key_turns.h"

namespace farside::index {

class GivenUp {
 public:
  // Something may have come of the change at any moment; or only if its block may be published.
  explicit GivenUp(KeyTurn& turn) : turn_(turn) {}
  GivenUp(KeyTurn& turn, const Draft& draft) : turn_(turn), draft_(&draft) {}
  GivenUp(const GivenUp&) = delete;
  GivenUp& operator=(const GivenUp&) = delete;
  ~GivenUp() {
    if (!turn_.carries() || (draft_ != nullptr && !draft_->may_be_published())) return;
    turn_.Settle(
        Error(ErrorCode::kOutcomeUnknown,
              "the operation was joined to another one on the same key, which was given up on the way"));
  }

 private:
  KeyTurn& turn_;
  const Draft* const draft_ = nullptr;
};

}  // namespace farside::index
