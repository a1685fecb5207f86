#include "pool/beats.h"

#include "pool/mutants.h"

namespace farside::pool {
namespace {

// As often as a client has to sync, or nearly: loops with beats stand inside of loops with beats.
constexpr int kBeatsPerLease = 8;

}  // namespace

Beats::Beats(PoolClient& pool)
    : pool_(pool),
      interval_(pool.member(fabric::NodeId{0}).options().lease / kBeatsPerLease),
      last_(pool.client().Now()) {}

bool Beats::Due() const { return !Mutant(kWalkSilently) && pool_.client().Now() - last_ >= interval_; }

Task<Done> Beats::Beat(fabric::Op& op) {
  last_ = pool_.client().Now();
  co_await pool_.Sync(op, /*raise=*/false);
  co_await op.Pause(Nanos{0});
  co_return Done{};
}

}  // namespace farside::pool
