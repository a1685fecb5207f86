#include "index/shard/patience.h"

#include "index/shard/mutants.h"

namespace farside::index::shard {

bool Patience::MayPinAgain() const { return index::Patience::MayPinAgain() || Mutant(kPinsPastADrop); }

}  // namespace farside::index::shard
