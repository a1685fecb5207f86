#include "index/shard/searcher.h"

#include "index/kit/block_buffer.h"
#include "index/shard/find_key.h"

namespace farside::index::shard {

Task<bool> Searcher::TrySearch(SearchContext& context) {
  const KeyAccess& at = context.at;
  if (at.part.IsBehind()) co_await at.part.CatchUp(at.op);
  View view;
  BlockBuffer block;
  co_await units_.ReadBucket(at, at.number(Candidate::kLevel1), view.bucket);
  std::optional<Found> found = co_await FindInBucket(at, view.bucket, block);
  if (!found.has_value() && view.bucket.overflow()) {
    co_await views_.ReadOverflows(at, view);
    found = co_await FindInOverflows(at, view, block);
  }
  if (found.has_value()) context.value.assign(found->value);
  // A reader need not split what it finds behind; but the next ones would all have to look above, for ever,
  // if no client writes here. Whether it succeeds does not matter to this one.
  const uint32_t version = at.directory().version;
  const bool behind = view.bucket.version < version && !at.directory().announced && !pool_.read_only();
  if (behind && view.bucket.unit != at.unit(Candidate::kLevel1, version))
    co_await splitter_.SplitFor(at, Candidate::kLevel1, at.number(Candidate::kLevel1)).Outcome();
  co_return found.has_value();
}

Task<bool> Searcher::SearchOverflow(const KeyAccess& at, std::string& value,
                                    const pool::PoolClient::Pin& pin) {
  View view;
  co_await views_.ReadOverflows(at, view);
  BlockBuffer block;
  const std::optional<Found> found = co_await FindInOverflows(at, view, block);
  if (found.has_value()) {
    value.assign(found->value);
    locations_.Remember(at, found->slot, pin);
  }
  co_return found.has_value();
}

// A coroutine of its own, so that searches without a cache have small frames.
Task<bool> Searcher::SearchLocation(const KeyAccess& at, Location known, std::string& value,
                                    const pool::PoolClient::Pin& pin) {
  BlockBuffer block;
  const std::optional<Found> found = co_await FindAgain(at, known, block);
  if (!found.has_value()) {
    locations_.Forget(at);
    co_return false;
  }
  value.assign(found->value);
  locations_.Remember(at, found->slot, pin);
  co_return true;
}

}  // namespace farside::index::shard
