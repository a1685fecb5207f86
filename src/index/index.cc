#include "index/index.h"

namespace farside::index {
namespace {

Error NotOrdered() {
  return Error(ErrorCode::kInvalidArgument,
               "this table keeps its keys in no order; use one of an ordered engine for scans of a range");
}

}  // namespace

Task<Done> Index::SearchTogether(fabric::Op& /*op*/, std::span<Search> /*searches*/) { co_return Done{}; }

Task<bool> Index::Touch(fabric::Op& /*op*/, fabric::FarAddr /*block*/, std::span<const std::byte> /*bytes*/) {
  co_return false;
}

Task<bool> Index::UnlinkTouched(fabric::Op& /*op*/) { co_return false; }

Task<bool> Index::Scan(fabric::Op& /*op*/, const KeyRange& /*range*/, size_t /*limit*/,
                       std::vector<Record>& /*page*/) {
  co_return NotOrdered();
}

Task<bool> Index::Last(fabric::Op& /*op*/, const KeyRange& /*range*/, Record& /*record*/) {
  co_return NotOrdered();
}

}  // namespace farside::index
