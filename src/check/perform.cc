#include "check/perform.h"

#include <string>
#include <utility>

namespace farside::check {
namespace {

KeyRange RangeOf(const Call& call) {
  KeyRange range = KeyRange::From(call.key);
  if (call.to.has_value()) range.to.emplace(*call.to);
  return range;
}

}  // namespace

Task<Outcome> Perform(index::Index& index, fabric::Op& op, Call call) {
  switch (call.kind) {
    case Kind::kGet: {
      std::string value;
      const bool found = co_await index.Get(op, call.key, value);
      Found answer;
      if (found) answer.value = std::move(value);
      co_return Outcome(std::move(answer));
    }
    case Kind::kPut: {
      const index::PutOutcome put = co_await index.Put(op, call.key, call.value);
      if (put == index::PutOutcome::kNotTold) co_return Outcome(Stored{});
      co_return Outcome(Stored{put == index::PutOutcome::kInserted});
    }
    case Kind::kInsert: {
      const bool applied = co_await index.Insert(op, call.key, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kUpdate: {
      const bool applied = co_await index.Update(op, call.key, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kDelete: {
      const bool applied = co_await index.Delete(op, call.key);
      co_return Outcome(Applied{applied});
    }
    case Kind::kCompareAndSet: {
      const bool applied = co_await index.CompareAndSet(op, call.key, call.expected, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kIncrement: {
      const uint64_t counter = co_await index.Increment(op, call.key, call.delta);
      co_return Outcome(Counted{counter});
    }
    case Kind::kScan: {
      const KeyRange range = RangeOf(call);
      Scanned scanned;
      scanned.more = co_await index.Scan(op, range, call.limit, scanned.records);
      co_return Outcome(std::move(scanned));
    }
    case Kind::kLast: {
      const KeyRange range = RangeOf(call);
      Record record;
      const bool found = co_await index.Last(op, range, record);
      Scanned scanned;
      if (found) scanned.records.push_back(std::move(record));
      co_return Outcome(std::move(scanned));
    }
    case Kind::kSeen: break;
  }
  co_return Error(ErrorCode::kUnsupported, "no such operation");
}

}  // namespace farside::check
