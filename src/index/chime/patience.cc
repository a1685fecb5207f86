#include "index/chime/patience.h"

#include "index/chime/mutants.h"

namespace farside::index::chime {

bool Patience::MayPinAgain() const { return index::Patience::MayPinAgain() || Mutant(kPinsPastADrop); }

}  // namespace farside::index::chime
