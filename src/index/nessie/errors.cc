#include "index/nessie/errors.h"

#include <fmt/format.h>

namespace farside::index::nessie {

Error BrokenTrail(const Partition& part, uint64_t slot) {
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("slot {} of a nessie table on node {} says that it is not in use, which cannot be; run "
                  "farside fsck",
                  slot, fabric::Index(part.node())));
}

Error BrokenWord(const Partition& part, uint64_t slot) {
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("slot {} of a nessie table on node {} has a word that no client writes; run farside fsck",
                  slot, fabric::Index(part.node())));
}

Error AwaitsWriter() {
  return Error(ErrorCode::kContended, "another client's change of the same slot is under way; retry later");
}

Error Unsettled() {
  return Error(ErrorCode::kContended, "other clients changed the key's slots all the time; retry later");
}

Error AwaitsGrowth() {
  return Error(ErrorCode::kContended,
               "both slots of the key are taken and the table is about to grow; retry");
}

Error NoPlace() {
  return Error(
      ErrorCode::kOutOfMemory,
      "both slots of the key are taken by keys that cannot move, and the table may not grow; make it "
      "with more slots, or let it grow");
}

Error NoMemoryToGrow() {
  return Error(ErrorCode::kOutOfMemory,
               "both slots of the key are taken, and there is no memory for the table to grow; delete "
               "something, or make a larger pool");
}

Error TakenForDead() {
  return Error(
      ErrorCode::kFenced,
      "a change was taken back by another client, which took this one for dead; nothing was changed; "
      "reconnect");
}

}  // namespace farside::index::nessie
