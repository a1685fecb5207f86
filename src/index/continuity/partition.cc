#include "index/continuity/partition.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "index/continuity/errors.h"

namespace farside::index::continuity {

using fabric::ForMaintenance;
using fabric::Op;
using fabric::Read;

namespace {

// How far a table has grown: it only rises.
auto Progress(const Root& root) {
  return std::tuple(root.current.doublings(), root.growing(), root.growing() ? root.moved : 0);
}

}  // namespace

// Far memory may say anything: of a table that is larger than the region, no walk would come to an end.
bool Partition::IsSound(const Root& read) const {
  if (!read.is_sound()) return false;
  const auto fits = [&](TableWord table) {
    const uint64_t bytes = TableBytes(PairsOf(read.shape, table.doublings()));
    return table.offset() <= region_bytes_ && bytes <= region_bytes_ - table.offset();
  };
  return fits(read.current) && (!read.growing() || fits(read.next));
}

// Roots that make no sense teach nothing; an operation that needs one reads it, and says so.
void Partition::Learn(const Root& read) {
  if (IsSound(read) && (root_.current.none() || Progress(read) >= Progress(root_))) root_ = read;
}

void Partition::AfterSync(std::span<const std::byte, pool::kLine> line) {
  Root read;
  std::memcpy(&read, line.data(), sizeof read);
  Learn(read);
}

Task<Done> Partition::Refresh(Op& op) {
  const uint64_t missed = missed_;
  const Root read = co_await op.InOrder(ForMaintenance(Read<Root>(at_)));
  if (!IsSound(read)) co_return DamagedRoot(at_);
  Learn(read);
  made_up_for_ = std::max(made_up_for_, missed);
  co_return Done{};
}

}  // namespace farside::index::continuity
