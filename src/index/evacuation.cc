#include "index/evacuation.h"

#include <algorithm>
#include <utility>

#include "fabric/ends_client.h"
#include "index/kit/block_buffer.h"
#include "pool/growing_pause.h"
#include "pool/memory/reach.h"

namespace farside::index {

using fabric::EndsClient;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::Read;

namespace {

constexpr size_t kLanes = 16;
// So many tables are tried for every block; the others are walked.
constexpr size_t kMostTried = 4;
constexpr size_t kMostByWalk = 64;

// Which of some blocks a table names.
class Named final : public pool::Reach {
 public:
  explicit Named(std::vector<FarAddr> blocks) : blocks_(std::move(blocks)) {
    std::sort(blocks_.begin(), blocks_.end());
  }
  void Mark(FarAddr block, uint64_t /*bytes*/) override {
    if (std::binary_search(blocks_.begin(), blocks_.end(), block)) found.push_back(block);
  }
  std::vector<FarAddr> found;

 private:
  std::vector<FarAddr> blocks_;
};

}  // namespace

Evacuation::Evacuation(pool::PoolClient& pool, Tables& catalog, std::vector<OpenTable*> tables,
                       std::function<void()> ended)
    : pool_(pool), catalog_(catalog), tables_(std::move(tables)), ended_(std::move(ended)) {}

Evacuation::~Evacuation() {
  for (const Marked& victim : victims_) pool_.allocator(victim.node).EndEvacuation(victim.chunk);
  ended_();
}

Task<Done> Evacuation::Choose(Op& op) {
  pool::EvacuationLimits limits;
  for (size_t i = 0; i < pool_.nodes() && limits.chunks > 0; ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!op.client().Reaches(node)) continue;
    limits.run = co_await pool_.allocator(node).ChunksMissing(op);
    if (limits.run == 0) continue;
    std::vector<pool::Allocator::Victim> victims = co_await pool_.allocator(node).BeginEvacuation(op, limits);
    Add(node, std::move(victims));
    limits.chunks -= std::min(limits.chunks, victims_.size());
    limits.blocks -= std::min(limits.blocks, blocks_.size());
  }
  co_return Done{};
}

void Evacuation::Add(NodeId node, std::vector<pool::Allocator::Victim> victims) {
  for (const pool::Allocator::Victim& victim : victims) {
    victims_.push_back({.node = node, .chunk = victim.chunk});
    for (const FarAddr block : victim.blocks) blocks_.push_back({.at = block, .bytes = victim.block_bytes});
  }
}

Task<Done> Evacuation::Move(Op& op) {
  co_await RunLanes(op);
  if (unknown_.empty() || tables_.size() <= kMostTried) co_return Done{};
  co_await FindByWalk(op);
  co_await RunLanes(op);
  co_return Done{};
}

Task<Done> Evacuation::RunLanes(Op& op) {
  std::vector<Task<Done>> lanes;
  for (size_t i = 0; i < std::min(kLanes, blocks_.size() - next_); ++i) lanes.push_back(RunLane());
  for (Task<Done>& lane : lanes) lane.Start();
  pool::GrowingPause pause;
  for (Task<Done>& lane : lanes) {
    while (!lane.done()) co_await op.Pause(pause.Next());
  }
  for (Task<Done>& lane : lanes) {
    const Result<Done> end = lane.TakeResult();
    if (!end.ok()) co_return end.error();
  }
  co_return Done{};
}

Task<Done> Evacuation::RunLane() {
  while (next_ < blocks_.size()) {
    Block block = blocks_[next_++];
    Op op(pool_.client(), OpKind::kMaintenance);
    co_await MoveBlock(op, block);
  }
  co_return Done{};
}

// What is read here only says which key to look for: no pin is held, and the block may be given back and used
// again meanwhile.
Task<Done> Evacuation::MoveBlock(Op& op, Block& block) {
  std::vector<std::byte> bytes(block.bytes);
  co_await op.InOrder(ForMaintenance(Read(block.at, std::span(bytes))));
  if (block.table != nullptr) {
    co_await TouchIn(op, *block.table, block, bytes);
    co_return Done{};
  }
  // A copy: other lanes change the order meanwhile.
  std::vector<OpenTable*> tried = tables_;
  tried.resize(std::min(tried.size(), kMostTried));
  for (OpenTable* table : tried) {
    const bool moved = co_await TouchIn(op, *table, block, bytes);
    if (!moved) continue;
    const auto found = std::find(tables_.begin(), tables_.end(), table);
    if (found != tables_.end()) std::rotate(tables_.begin(), found, found + 1);
    co_return Done{};
  }
  unknown_.push_back(block);
  co_return Done{};
}

Task<bool> Evacuation::TouchIn(Op& op, OpenTable& table, const Block& block,
                               std::span<const std::byte> bytes) {
  const bool is_there = co_await Validate(op, table);
  if (!is_there) co_return false;
  const Result<bool> moved = co_await table.index->Touch(op, block.at, bytes).Outcome();
  // Whatever keeps this record where it is, others may move.
  if (!moved.ok() && EndsClient(moved.error())) co_return moved.error();
  if (!moved.ok() || !*moved) co_return false;
  ++moved_;
  co_return true;
}

Task<bool> Evacuation::Validate(Op& op, OpenTable& table) {
  const Result<Done> valid = co_await catalog_.Validate(op, table).Outcome();
  if (valid.ok()) co_return true;
  if (valid.error().code() != ErrorCode::kNotFound) co_return valid.error();
  std::erase(tables_, &table);
  co_return false;
}

Task<Done> Evacuation::FindByWalk(Op& op) {
  std::vector<FarAddr> wanted;
  for (const Block& block : unknown_) {
    if (wanted.size() < kMostByWalk) wanted.push_back(block.at);
  }
  const std::vector<OpenTable*> tables = tables_;
  for (OpenTable* table : tables) {
    const bool is_there = co_await Validate(op, *table);
    if (!is_there) continue;
    Named named(wanted);
    const pool::PoolClient::Pin pin = pool_.Begin();
    const Result<Done> walked = co_await table->index->Walk(op, named).Outcome();
    if (!walked.ok() && EndsClient(walked.error())) co_return walked.error();
    for (Block block : unknown_) {
      block.table = table;
      if (std::find(named.found.begin(), named.found.end(), block.at) != named.found.end())
        blocks_.push_back(block);
    }
  }
  unknown_.clear();
  co_return Done{};
}

Task<bool> Evacuation::Unlink(Op& op) {
  bool more = false;
  const std::vector<OpenTable*> tables = tables_;
  for (OpenTable* table : tables) {
    const bool is_there = co_await Validate(op, *table);
    if (!is_there) continue;
    const Result<bool> unlinked = co_await table->index->UnlinkTouched(op).Outcome();
    if (!unlinked.ok() && EndsClient(unlinked.error())) co_return unlinked.error();
    more |= !unlinked.ok() || *unlinked;
  }
  co_return more;
}

}  // namespace farside::index
