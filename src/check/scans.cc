#include "check/scans.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "farside/range.h"

namespace farside::check {
namespace {

using Keys = std::set<std::string_view, std::less<>>;

bool IsScan(const Operation& operation) {
  return operation.kind == Kind::kScan || operation.kind == Kind::kLast;
}

const Scanned& AnswerOf(const Operation& scan) { return std::get<Scanned>(scan.outcome); }

KeyRange RangeOf(const Operation& scan) { return {.from = scan.key, .to = scan.to}; }

// Rule 1; empty if it is kept.
std::string WhyMalformed(const Operation& scan) {
  const Scanned& answer = AnswerOf(scan);
  const KeyRange range = RangeOf(scan);
  const uint64_t limit = scan.kind == Kind::kLast ? 1 : scan.limit;
  for (size_t i = 0; i < answer.records.size(); ++i) {
    const std::string& key = answer.records[i].key;
    if (!range.Has(key)) return fmt::format("key {} is not in the range", Printable(key));
    if (i == 0) continue;
    const std::string& before = answer.records[i - 1].key;
    if (key == before) return fmt::format("key {} comes twice", Printable(key));
    if (key < before) return fmt::format("key {} comes behind {}", Printable(key), Printable(before));
  }
  if (answer.records.size() > limit)
    return fmt::format("it has {} records, and the limit is {}", answer.records.size(), limit);
  if (answer.more && answer.records.size() < limit) {
    return fmt::format("it ends after {} records, before its limit of {}, and says that there are more",
                       answer.records.size(), limit);
  }
  return "";
}

// Every key that an operation has written, read or seen, or that was there before.
Keys AllKeys(std::span<const Operation> operations, const CheckOptions& options) {
  Keys keys;
  for (const auto& [key, value] : options.initial) keys.insert(key);
  for (const Operation& operation : operations) {
    if (!IsScan(operation)) {
      keys.insert(operation.key);
    } else if (operation.answered()) {
      for (const Record& record : AnswerOf(operation).records) keys.insert(record.key);
    }
  }
  return keys;
}

// Rule 2. Keys of the range from `first` to `last`, both included; no bound where there is none.
struct Covered {
  KeyRange range;
  std::optional<std::string> first;
  std::optional<std::string> last;

  bool Has(std::string_view key) const {
    return range.Has(key) && (!first || key >= *first) && (!last || key <= *last);
  }
};

Covered CoveredBy(const Operation& scan) {
  const Scanned& answer = AnswerOf(scan);
  Covered covered{.range = RangeOf(scan), .first = {}, .last = {}};
  if (answer.records.empty()) return covered;
  if (scan.kind == Kind::kLast) covered.first = answer.records.back().key;
  if (scan.kind == Kind::kScan && answer.more) covered.last = answer.records.back().key;
  return covered;
}

// Rule 3: what the scan says about the key.
Operation Seen(const Operation& scan, std::string_view key) {
  Operation seen;
  seen.client = scan.client;
  seen.kind = Kind::kSeen;
  seen.fate = Fate::kAnswered;
  seen.key = key;
  seen.invoked = scan.invoked;
  seen.returned = scan.returned;
  seen.scan = CallOf(scan);
  Found found;
  const std::vector<Record>& records = AnswerOf(scan).records;
  const auto at = std::ranges::lower_bound(records, key, std::less<>{}, &Record::key);
  if (at != records.end() && at->key == key) found.value = at->value;
  seen.outcome = std::move(found);
  return seen;
}

}  // namespace

bool HasScans(std::span<const Operation> operations) { return std::ranges::any_of(operations, IsScan); }

std::optional<MalformedScan> FindMalformedScan(std::span<const Operation> operations) {
  std::optional<MalformedScan> first;
  for (const Operation& operation : operations) {
    if (!IsScan(operation) || !operation.answered()) continue;
    if (first.has_value() && first->scan->returned < operation.returned) continue;
    std::string why = WhyMalformed(operation);
    if (!why.empty()) first = MalformedScan{&operation, std::move(why)};
  }
  return first;
}

std::vector<Operation> TakeScansApart(std::span<const Operation> operations, const CheckOptions& options) {
  const Keys keys = AllKeys(operations, options);
  std::vector<Operation> apart;
  for (const Operation& operation : operations) {
    if (!IsScan(operation)) {
      apart.push_back(operation);
      continue;
    }
    if (!operation.answered()) continue;
    const Covered covered = CoveredBy(operation);
    for (auto key = keys.lower_bound(operation.key); key != keys.end(); ++key) {
      if (covered.range.IsBeyond(*key)) break;
      if (covered.Has(*key)) apart.push_back(Seen(operation, *key));
    }
  }
  return apart;
}

}  // namespace farside::check
