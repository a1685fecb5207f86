#include "index/kit/search_ticket.h"

#include "base/mutant.h"
#include "index/kit/mutants.h"

namespace farside::index {

void SearchTicket::Tell(bool found) {
  if (Mutant(kit::kJoinsSearchUnderWay)) ServeWaiting();
  ForEachPassenger([this, found](SearchTicket& other) {
    other.found_ = found;
    if (found) other.value_.assign(value_);
    other.Dismiss();
  });
}

}  // namespace farside::index
