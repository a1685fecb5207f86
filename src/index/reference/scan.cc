// Scan and Last. The reference table keeps its keys in no order, so each of them looks through the whole
// table and keeps what was asked for.
//
// Why that keeps the promise of index.h: a key has one bucket for ever, and each bucket is read as it was at
// one moment between call and return. So what a scan says about a key, its value or its absence, was true at
// that moment.
#include <algorithm>
#include <iterator>
#include <utility>

#include "fabric/op.h"
#include "index/reference/mutants.h"
#include "index/reference/table.h"

namespace farside::index::reference {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

void Table::Sieve::Add(const Record& record) {
  if (!range.Has(record.key)) return;
  kept.insert_or_assign(record.key, record.value);
  if (kept.size() <= most) return;
  kept.erase(end == End::kFirst ? std::prev(kept.end()) : kept.begin());
}

// A trip for each bucket, and one for each record.
Task<Done> Table::Sift(Op& op, Sieve& sieve) {
  const pool::PoolClient::Pin pin = pool().Begin();
  for (size_t part = 0; part < roots_.size(); ++part) {
    for (uint64_t i = 0; i < options_.buckets; ++i) {
      const FarAddr at = BucketAt(part, i);
      const Bucket bucket = co_await ReadBucket(op, at);
      if (Mutant(kScanSkipsLockedBucket) && bucket.head.locked()) continue;
      const Image image = *CurrentImage(bucket);
      const std::vector<Match> records = co_await ReadRecords(op, at, image);
      for (const Match& record : records) sieve.Add(record.record);
    }
  }
  co_return Done{};
}

Task<bool> Table::Scan(Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) {
  // One more than is returned tells whether there are more.
  Sieve sieve{.range = range, .end = Sieve::End::kFirst, .most = limit + (limit < SIZE_MAX ? 1 : 0)};
  co_await Sift(op, sieve);
  const bool more = sieve.kept.size() > limit;
  if (more) sieve.kept.erase(std::prev(sieve.kept.end()));
  for (auto& [key, value] : sieve.kept) page.push_back({.key = key, .value = std::move(value)});
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return more;
}

Task<bool> Table::Last(Op& op, const KeyRange& range, Record& record) {
  Sieve sieve{.range = range, .end = Sieve::End::kLast, .most = 1};
  co_await Sift(op, sieve);
  const bool found = !sieve.kept.empty();
  if (found) {
    record.key = sieve.kept.begin()->first;
    record.value = std::move(sieve.kept.begin()->second);
  }
  op.End(OpKind::kScan, found ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return found;
}

}  // namespace farside::index::reference
