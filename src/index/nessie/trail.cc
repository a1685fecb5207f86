#include "index/nessie/trail.h"

#include <algorithm>
#include <span>

#include "index/nessie/errors.h"
#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Op;
using fabric::Order;
using fabric::Read;

namespace {

constexpr size_t kMostByATrip = 8;  // of each trail
constexpr size_t kMostAgainByATrip = fabric::kMaxVerbsPerTrip / kCandidates;

}  // namespace

void BeginLook(const Partition& part, const KeyHash& hash, Look& look) {
  uint32_t version = part.directory().newest;
  if (Mutant(kNoMiddleState)) version = part.directory().version;
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary})
    look.of(candidate).Begin(part.shape(), hash.SlotOf(part.shape(), candidate, version));
}

Task<Done> ReadLook(Op& op, Partition& part, const KeyHash& hash, Look& look) {
  BeginLook(part, hash, look);
  Trail& first = look.of(Candidate::kPrimary);
  Trail& second = look.of(Candidate::kSecondary);
  if (!part.ExpectsUnsplit()) {
    co_await op.Together(Read(part.SlotAt(first.step(0).slot), BytesOf(first.step(0).word)),
                         Read(part.SlotAt(second.step(0).slot), BytesOf(second.step(0).word)));
    first.set_read(1);
    second.set_read(1);
    if (first.is_settled() && second.is_settled()) part.NoteUnsplit(false);
  }
  if (look.is_settled()) co_return Done{};
  co_await FinishLooks(op, part, &look);
  part.NoteUnsplit(first.effective() != 0 || second.effective() != 0);
  co_return Done{};
}

Task<Done> ReadLookAgain(Op& op, const Partition& part, const Look& look, Look& again) {
  again = look;
  Trail& first = again.of(Candidate::kPrimary);
  Trail& second = again.of(Candidate::kSecondary);
  if (first.read() == 1 && second.read() == 1) {
    co_await op.Together(Read(part.SlotAt(first.step(0).slot), BytesOf(first.step(0).word)),
                         Read(part.SlotAt(second.step(0).slot), BytesOf(second.step(0).word)));
    co_return Done{};
  }
  for (size_t begin = 0; begin < std::max(first.read(), second.read()); begin += kMostAgainByATrip) {
    fabric::Batch batch(op, Order::kTogether);
    for (Trail& trail : again.trails) {
      for (size_t i = begin; i < std::min(trail.read(), begin + kMostAgainByATrip); ++i)
        batch.Add(Read(part.SlotAt(trail.step(i).slot), BytesOf(trail.step(i).word)));
    }
    co_await batch;
  }
  co_return Done{};
}

Task<Done> FinishLooks(Op& op, Partition& part, Look* first, Look* second) {
  const std::array<Look*, 2> both = {first, second};
  const std::span<Look* const> looks = std::span(both).first(second == nullptr ? 1 : 2);
  size_t depth = 2;  // as a rule, the parent of an unsplit slot is in use
  while (true) {
    fabric::SmallBatch<both.size() * kCandidates * kMostByATrip> batch(op, Order::kTogether);
    for (Look* look : looks) {
      for (Trail& trail : look->trails) {
        if (trail.is_settled()) continue;
        if (trail.read() == trail.count()) co_return BrokenTrail(part, trail.step(trail.count() - 1).slot);
        const size_t end = std::min(trail.count(), trail.read() + depth);
        for (size_t i = trail.read(); i < end; ++i)
          batch.Add(Read(part.SlotAt(trail.step(i).slot), BytesOf(trail.step(i).word)));
        trail.set_read(end);
      }
    }
    if (batch.size() == 0) co_return Done{};
    co_await batch;
    depth = kMostByATrip;
    for (Look* look : looks) {
      for (Trail& trail : look->trails) {
        if (trail.is_settled()) trail.set_read(trail.effective() + 1);
      }
    }
  }
}

}  // namespace farside::index::nessie
