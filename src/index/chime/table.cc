#include "index/chime/table.h"

#include <fmt/format.h>

#include <utility>

#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

Table::Table(const Options& options, pool::PoolClient& pool, const std::vector<FarAddr>& roots)
    : KeyedIndex(pool, options),
      context_(options, pool, roots),
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
      mover_(context_),
      splitter_(context_, records_),
      inner_merger_(context_, locks_, inner_nodes_, root_, locator_),
      merger_(context_, locks_, inner_nodes_, root_, locator_, inner_merger_),
      changer_(context_, hotspots_, root_, locator_, bounds_, locks_, mover_, splitter_, merger_),
      scanner_(context_, locator_, inner_nodes_, bounds_, leaves_, records_),
      last_finder_(root_, locator_, inner_nodes_, bounds_, leaves_, records_),
      cursor_reader_(root_, locator_, bounds_, leaves_, records_),
      stats_collector_(context_, root_, locator_, inner_nodes_, leaves_, bounds_, hotspots_, searcher_),
      verifier_(context_, root_, locator_, inner_nodes_, bounds_, locks_, leaves_, records_),
      walker_(context_, root_, locator_, inner_nodes_, leaves_) {}

Status Table::CheckKey(std::string_view key) const {
  if (!context_.shape().inline_keys || key.size() == kPrefixBytes) return OkStatus();
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the key has {} bytes; the table was made with keys=inline, so keys have {}",
                           key.size(), kPrefixBytes));
}

Status Table::CheckChange(const Change& change) const {
  Status accepted = CheckKey(change.key);
  if (!accepted.ok()) return accepted;
  const bool stores_value = change.kind != ChangeKind::kDelete && change.kind != ChangeKind::kIncrement;
  if (context_.shape().inline_keys && stores_value && change.value.size() != 8) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the value has {} bytes; the table was made with keys=inline, so values have 8",
                             change.value.size()));
  }
  return pool::CheckBlockSizes(change.key, change.value);
}

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
    RetryPolicy policy = RetryPolicySince(catalogs, context_.nodes.first());
    outcome = co_await WithRetries<T>(op, policy, outcome.error(), again).Outcome();
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

template class farside::index::KeyedIndex<farside::index::chime::Table>;
