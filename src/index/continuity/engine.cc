// The engine of the continuity table, and its entry in the list of engines.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "index/continuity/continuity.h"
#include "index/continuity/handlers.h"
#include "index/continuity/mutants.h"
#include "index/continuity/offered.h"
#include "index/continuity/table.h"
#include "index/engine_entry.h"
#include "pool/durability.h"

namespace farside::index::continuity {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

namespace {

constexpr uint64_t kZeroedByATrip = 256 * 1024;
constexpr uint64_t kRecordsPerPair = 10;  // of 20 slots: few tables this full have to grow

// The part of an empty table on one node, durable if the pool is.
class NewPart {
 public:
  NewPart(pool::PoolClient& pool, NodeId node, Shape shape) : pool_(pool), node_(node), shape_(shape) {}

  Task<FarAddr> Make(Op& op) {
    pool::Allocator& allocator = pool_.allocator(node_);
    if (!table_.Reserve(allocator, TableBytes(shape_.pairs()))) co_await table_.FetchRoom(op);
    if (!root_.Reserve(allocator, sizeof(Root))) co_await root_.FetchRoom(op);
    DueSweep sweep(allocator);
    Offered table(table_);
    Offered root_memory(root_);
    const std::vector<std::byte> zeros(std::min(table_.bytes(), kZeroedByATrip));
    for (uint64_t done = 0; done < table_.bytes(); done += zeros.size()) {
      const uint64_t some = std::min<uint64_t>(zeros.size(), table_.bytes() - done);
      co_await op.InOrder(Unreachable(Write(table_.at() + done, std::span(zeros).first(some))));
    }
    const Root root{.current = TableWord(table_.at().offset, 0), .shape = shape_};
    co_await op.InOrder(Unreachable(WriteObject(root_.at(), root)));
    if (pool_.member(node_).geometry().durable) {
      std::vector<pool::ByteRange> written{{table_.at().offset, table_.bytes()},
                                           {root_.at().offset, sizeof root}};
      if (Mutant(kNewTableNotDurable)) written.erase(written.begin());
      if (Mutant(kNewRootNotDurable)) written.pop_back();
      co_await pool::MakeDurable(op, node_, std::move(written));
    }
    table.TakeBack();
    root_memory.TakeBack();
    sweep.NotDue();
    co_return root_.at();
  }
  // It is the table's from now on.
  void Keep() {
    table_.Publish();
    root_.Publish();
  }

 private:
  pool::PoolClient& pool_;
  const NodeId node_;
  const Shape shape_;
  Unpublished table_;
  Unpublished root_;
};

}  // namespace

std::vector<OptionMap> ContinuityEngine::stress_options() const {
  return {{{"pairs", "1"},
           {"bucket_slots", "1"},
           {"shared_slots", "1"},
           {"group_slots", "1"},
           {"group_every", "1"}},
          {{"pairs", "1"},
           {"bucket_slots", "1"},
           {"shared_slots", "1"},
           {"group_slots", "1"},
           {"group_every", "0"}},
          {{"pairs", "1"},
           {"bucket_slots", "1"},
           {"shared_slots", "2"},
           {"group_slots", "2"},
           {"group_every", "2"}},
          {{"pairs", "2"}}};
}

OptionMap ContinuityEngine::OptionsFor(const ExpectedRecords& expected) const {
  return {{"pairs", std::to_string(std::max<uint64_t>(1, expected.records / kRecordsPerPair))}};
}

Task<std::vector<FarAddr>> ContinuityEngine::Create(Op& op, pool::PoolClient& pool,
                                                    std::vector<NodeId> nodes) {
  std::vector<std::unique_ptr<NewPart>> parts;
  std::vector<FarAddr> roots;
  for (const NodeId node : nodes) {
    parts.push_back(std::make_unique<NewPart>(pool, node, options_.shape()));
    const FarAddr root = co_await parts.back()->Make(op);
    roots.push_back(root);
  }
  for (const std::unique_ptr<NewPart>& part : parts) part->Keep();
  co_return std::move(roots);
}

std::unique_ptr<Index> ContinuityEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, roots);
}

std::string ContinuityEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  for (const FarAddr& root : roots) {
    if (at.node != root.node || at.offset < root.offset || at.offset >= root.offset + sizeof(Root)) continue;
    switch (at.offset - root.offset) {
      case kCurrentOffset: return "root current table";
      case kNextOffset: return "root next table";
      case kMovedOffset: return "root moved pairs";
      case kShapeOffset: return "root shape";
      default: return "root";
    }
  }
  return "";
}

Result<std::shared_ptr<Engine>> MakeContinuityEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<ContinuityEngine>(*parsed));
}

EngineEntry Register() {
  return {
      .name = "continuity", .rank = 50, .make = MakeContinuityEngine, .mutants = kAllMutants, .serve = Serve};
}

}  // namespace farside::index::continuity
