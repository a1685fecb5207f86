// A shard table as one client has it open: the operations, and the collaborators that carry them out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/index.h"
#include "index/kit/keyed_index.h"
#include "index/shard/batch_searcher.h"
#include "index/shard/changer.h"
#include "index/shard/context.h"
#include "index/shard/location_cache.h"
#include "index/shard/options.h"
#include "index/shard/overflow_inserter.h"
#include "index/shard/partitions.h"
#include "index/shard/searcher.h"
#include "index/shard/slot_writer.h"
#include "index/shard/splitter.h"
#include "index/shard/unit_locks.h"
#include "index/shard/unit_reader.h"
#include "index/shard/view_reader.h"
#include "index/shard/walker.h"
#include "pool/client.h"

namespace farside::index::shard {

class Table final : public KeyedIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, std::span<const fabric::FarAddr> roots);

  bool searches_together() const override { return true; }
  Task<Done> SearchTogether(fabric::Op& op, std::span<Search> searches) override {
    return batches_.SearchTogether(op, searches);
  }
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override {
    return walker_.Next(op, cursor, page);
  }
  Task<TableStats> Stats(fabric::Op& op) override { return walker_.Stats(op, locations_.bytes()); }
  uint64_t growth() const override;
  void ConfirmTable(const pool::Membership& home, uint64_t catalog_changes) override {
    partitions_.ConfirmTable(home, catalog_changes);
  }
  void Anticipate(std::string_view key) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override { return walker_.Walk(op, reach); }
  Task<Done> Verify(fabric::Op& op) override { return walker_.Verify(op); }

 private:
  friend class KeyedIndex<Table>;
  Task<bool> SearchAlone(fabric::Op& op, std::string_view key, std::string& value);
  ChangeContext ContextOf(fabric::Op& op, Change& change);
  SearchContext ContextOf(fabric::Op& op, std::string_view key, std::string& value);
  Task<Attempt> TryChange(ChangeContext& context) { return changer_.Try(context); }
  Task<bool> TrySearch(SearchContext& context) { return searcher_.TrySearch(context); }

  Partitions partitions_;
  LocationCache locations_;
  UnitLocks locks_;  // refers to the splitter, which finishes the splits of dead lock holders
  UnitReader units_;
  Splitter splitter_;
  ViewReader views_;
  SlotWriter writer_;
  OverflowInserter overflows_;
  Changer changer_;
  Searcher searcher_;
  BatchSearcher batches_;
  Walker walker_;
};

}  // namespace farside::index::shard

extern template class farside::index::KeyedIndex<farside::index::shard::Table>;
