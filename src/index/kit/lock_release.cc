#include "index/kit/lock_release.h"

#include "base/mutant.h"
#include "index/kit/mutants.h"

namespace farside::index {

bool LockRelease::IsByWrite(fabric::Op& op) {
  return !op.client().stores_back_failed_cas() || Mutant(kit::kReleasedByWriteAnyway);
}

bool LockRelease::GoesAlong(fabric::Op& op) const {
  if (Mutant(kit::kReleasedTwice) || Mutant(kit::kReleaseNotOrdered)) Detach(op);
  return !Mutant(kit::kReleaseNotOrdered);
}

void LockRelease::Detach(fabric::Op& op) const {
  if (IsByWrite(op)) {
    op.Detach(fabric::Order::kInOrder, fabric::WriteObject(lock_, free_));
  } else {
    op.Detach(fabric::Order::kInOrder, fabric::Cas(lock_, held_, free_));
  }
}

}  // namespace farside::index
