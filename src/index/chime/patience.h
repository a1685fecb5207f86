// How long an operation on a chime table that meets others goes on trying: see index/common/patience.h.
//
// INVARIANT chime/10: an operation that has to wait longer than others should have to wait for its pin gives it up, and begins
// anew from the root with another; and only if no catalog has changed since it began, as far as it knows.
#pragma once

#include <utility>

#include "index/chime/chime.h"
#include "index/common/patience.h"

namespace farside::index::chime {

class Patience : public index::Patience {
 public:
  using index::Patience::Patience;
  bool MayPinAgain() const;
};

// `attempt` pins, tries from the root, and lets go of the pin whatever comes of it; the last one has failed with `error`.
template <class T, class Attempt>
Task<T> Table::Patiently(fabric::Op& op, uint64_t catalogs, Error error, Attempt attempt) {
  Patience patience(pool_, nodes_.front(), options_.backoff, catalogs);
  while (patience.Allows(error)) {
    co_await patience.Wait(op);
    if (!patience.MayPinAgain()) co_return Patience::CatalogChanged();
    Result<T> outcome = co_await attempt().Outcome();
    if (outcome.ok()) co_return std::move(*outcome);
    error = outcome.error();
  }
  co_return error;
}

}  // namespace farside::index::chime
