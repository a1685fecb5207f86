#include "index/chime/table.h"

#include <fmt/format.h>

#include <utility>

#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "index/kit/given_up.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

constexpr int kMostAttempts = 1000;

bool StoresItsValue(ChangeKind kind) { return kind != ChangeKind::kDelete && kind != ChangeKind::kIncrement; }

}  // namespace

Table::Table(const Options& options, pool::PoolClient& pool, const std::vector<FarAddr>& roots)
    : context_(options, pool, roots),
      bounds_(context_),
      inner_nodes_(context_, bounds_),
      // With leaf_read=whole, for comparison, searches read whole leaves for every key.
      hotspots_(options.leaf_read == LeafRead::kWhole ? 0 : options.hotspot_bytes),
      root_(context_, inner_nodes_, bounds_, hotspots_),
      locks_(context_, recovery_),
      leaves_(context_, locks_),
      records_(context_),
      recovery_(context_, locks_, leaves_, inner_nodes_, root_),
      locator_(context_, root_, inner_nodes_, bounds_, pivot_inserts_, recovery_),
      pivot_inserts_(context_, locks_, inner_nodes_, root_, locator_),
      searcher_(context_, hotspots_, root_, locator_, bounds_, locks_),
      mover_(context_, locks_),
      splitter_(context_, locks_, records_),
      merger_(context_, locks_, inner_nodes_, root_, locator_),
      changer_(context_, hotspots_, root_, locator_, bounds_, locks_, mover_, splitter_, merger_),
      scanner_(context_, locator_, inner_nodes_, bounds_, leaves_, records_),
      last_finder_(root_, locator_, inner_nodes_, bounds_, leaves_, records_),
      cursor_reader_(root_, locator_, bounds_, leaves_, records_),
      stats_collector_(context_, root_, locator_, inner_nodes_, leaves_, bounds_, hotspots_, searcher_),
      verifier_(context_, root_, locator_, inner_nodes_, bounds_, locks_, leaves_, records_),
      walker_(context_, root_, locator_, inner_nodes_, leaves_) {}

Patience Table::PatienceSince(uint64_t catalogs) const {
  return Patience(context_.pool, context_.nodes.front(), context_.options.backoff, catalogs, kPinsPastADrop);
}

std::optional<Error> Table::Refused(std::string_view key) const {
  if (!context_.shape().inline_keys || key.size() == kPrefixBytes) return std::nullopt;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the key has {} bytes; the table was made with keys=inline, so keys have {}",
                           key.size(), kPrefixBytes));
}

// ---- one key -------------------------------------------------------------------------------------------

Task<bool> Table::Get(Op& op, std::string_view key, std::string& value) {
  const std::optional<Error> refused = Refused(key);
  if (refused.has_value()) co_return *refused;
  const uint64_t catalogs = context_.pool.known_catalog_changes();
  SearchContext search{.op = op, .value = value, .target = Target(context_.shape(), hotspots_, key)};
  search.pin.emplace(context_.pool.Begin());
  Result<bool> found = co_await searcher_.Try(search).Outcome();
  search.pin.reset();
  if (!found.ok()) {
    const auto again = [&] { return GetPinned(search); };
    found = co_await Patiently<bool>(op, PatienceSince(catalogs), found.error(), again).Outcome();
  }
  if (!found.ok()) co_return found.error();
  op.End(OpKind::kSearch, *found ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return *found;
}

Task<bool> Table::GetPinned(SearchContext& search) {
  search.pin.emplace(context_.pool.Begin());
  Result<bool> found = co_await searcher_.Try(search).Outcome();
  search.pin.reset();
  co_return found;
}

Task<Changed> Table::Modify(Op& op, Change asked) {
  const std::optional<Error> refused = Refused(asked.key);
  if (refused.has_value()) co_return *refused;
  if (context_.shape().inline_keys && StoresItsValue(asked.kind) && asked.value.size() != 8) {
    co_return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the value has {} bytes; the table was made with keys=inline, so values have 8",
                    asked.value.size()));
  }
  const Status fits = pool::CheckBlockSizes(asked.key, asked.value);
  if (!fits.ok()) co_return fits.error();
  ChangeContext change{.op = op,
                       .change = asked,
                       .target = Target(context_.shape(), hotspots_, asked.key),
                       .deferred = DeferredWork(context_, pivot_inserts_)};
  const uint64_t catalogs = context_.pool.known_catalog_changes();
  KeyTurn turn(key_queue_, op.client(), change.target.hash, asked);
  std::string last_value;  // of those that it carries
  if (!turn.is_first()) {
    {
      const pool::PoolClient::Stay stay(context_.pool);
      co_await turn;
    }
    if (turn.outcome().has_value()) co_return *turn.outcome();
    if (context_.pool.known_catalog_changes() != catalogs) co_return Patience::CatalogChanged();
    if (turn.Carry(last_value)) change.change.value = last_value;
  }
  const GivenUp given_up(turn);
  Result<Changed> changed = co_await ModifyInTurn(change, catalogs).Outcome();
  if (!changed.ok() && changed.error().code() == ErrorCode::kOutOfMemory && turn.carries()) {
    // There may be room for its own value.
    turn.Release();
    change.change.value = asked.value;
    if (context_.pool.known_catalog_changes() != catalogs) co_return Patience::CatalogChanged();
    changed = co_await ModifyInTurn(change, catalogs).Outcome();
  }
  turn.Settle(changed);
  co_return changed;
}

Task<Changed> Table::ModifyInTurn(ChangeContext& change, uint64_t catalogs) {
  Result<Changed> changed = co_await ModifyPinned(change).Outcome();
  if (!changed.ok()) {
    const auto again = [&] { return ModifyPinned(change); };
    changed =
        co_await Patiently<Changed>(change.op, PatienceSince(catalogs), changed.error(), again).Outcome();
  }
  if (!changed.ok()) co_return changed.error();
  co_return *changed;
}

Task<Changed> Table::ModifyPinned(ChangeContext& change) {
  change.pin.emplace(context_.pool.Begin());
  Result<Attempt> tried = Attempt::kRetry;
  for (change.attempt = 0; change.attempt < kMostAttempts; ++change.attempt) {
    tried = co_await changer_.Try(change).Outcome();
    if (!tried.ok() || *tried == Attempt::kDone) break;
    change.op.CountRetry();
  }
  change.deferred.ReturnMemory();
  change.draft.Discard();
  change.pin.reset();
  if (!tried.ok()) co_return tried.error();
  if (*tried == Attempt::kRetry) co_return Contended("the leaf of the key is split again and again");
  co_return change.result;
}

// ---- many keys -----------------------------------------------------------------------------------------

template <class T, class Attempt>
Task<T> Table::Pinned(Op& op, Attempt attempt) {
  const pool::PoolClient::Pin pin = context_.pool.Begin();
  if (!root_.IsFresh(pin)) co_await root_.Refresh(op, pin);
  T value = co_await attempt();
  co_return std::move(value);
}

template <class T, class Attempt>
Task<T> Table::Retry(Op& op, Attempt attempt) {
  const uint64_t catalogs = context_.pool.known_catalog_changes();
  Result<T> outcome = co_await Pinned<T>(op, attempt).Outcome();
  if (!outcome.ok()) {
    const auto again = [&] { return Pinned<T>(op, attempt); };
    outcome = co_await Patiently<T>(op, PatienceSince(catalogs), outcome.error(), again).Outcome();
  }
  co_return std::move(outcome);
}

// After a wait the scan goes on behind the last record that it has.
Task<bool> Table::Scan(Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) {
  const size_t before = page.size();
  std::optional<KeyRange> rest;
  const auto attempt = [&] {
    if (page.size() > before) {
      rest = range;
      rest->from = page.back().key + '\0';
    }
    return scanner_.Try(op, rest.has_value() ? *rest : range, limit - (page.size() - before), page);
  };
  const bool more = co_await Retry<bool>(op, attempt);
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return more;
}

Task<bool> Table::Last(Op& op, const KeyRange& range, Record& record) {
  const auto attempt = [&] { return last_finder_.Try(op, range, record); };
  const bool found = co_await Retry<bool>(op, attempt);
  op.End(OpKind::kScan, found ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return found;
}

Task<bool> Table::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const auto attempt = [&] { return cursor_reader_.Try(op, cursor, page); };
  const bool more = co_await Retry<bool>(op, attempt);
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return more;
}

Task<TableStats> Table::Stats(Op& op) {
  const auto attempt = [&] { return stats_collector_.Try(op); };
  TableStats stats = co_await Retry<TableStats>(op, attempt);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return std::move(stats);
}

Task<Done> Table::Walk(Op& op, pool::Reach& reach) {
  co_await walker_.Walk(op, reach);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::Verify(Op& op) {
  const pool::PoolClient::Pin pin = context_.pool.Begin();
  co_await root_.Refresh(op, pin);
  co_await verifier_.Verify(op);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

}  // namespace farside::index::chime

template class farside::index::ChangingIndex<farside::index::chime::Table>;
