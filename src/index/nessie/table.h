// A nessie table as one client has it open.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/kit/keyed_index.h"
#include "index/nessie/changer.h"
#include "index/nessie/cleaner.h"
#include "index/nessie/committer.h"
#include "index/nessie/context.h"
#include "index/nessie/mover.h"
#include "index/nessie/options.h"
#include "index/nessie/partition.h"
#include "index/nessie/room_maker.h"
#include "index/nessie/spare_lines.h"
#include "index/nessie/splitter.h"
#include "index/nessie/sweeper.h"
#include "index/nessie/walker.h"
#include "pool/client.h"

namespace farside::index::nessie {

class Table final : public KeyedIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, std::span<const fabric::FarAddr> roots);

  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override {
    return walker_.Next(op, cursor, page);
  }
  Task<TableStats> Stats(fabric::Op& op) override { return walker_.Stats(op); }
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override { return walker_.Walk(op, reach); }
  Task<Done> Verify(fabric::Op& op) override { return walker_.Verify(op); }
  uint64_t growth() const override;
  void ConfirmTable(const pool::Membership& home, uint64_t catalog_changes) override {
    partitions_.ConfirmTable(home, catalog_changes);
  }

 private:
  friend class KeyedIndex<Table>;
  using ChangeContext = nessie::ChangeContext;
  using SearchContext = nessie::SearchContext;

  // For the driver of operations (kit/keyed_index.h).
  ChangeContext ContextOf(fabric::Op& op, Change& change);
  SearchContext ContextOf(fabric::Op& op, std::string_view key, std::string& value);
  Task<Attempt> TryChange(ChangeContext& context) { return changer_.TryChange(context); }
  Task<bool> TrySearch(SearchContext& context);
  static Result<pool::BlockView> DecodeRecord(std::span<const std::byte> bytes) {
    return nessie::DecodeRecord(bytes);
  }

  Partitions partitions_;
  SpareLines spares_;
  Cleaner cleaner_;
  Committer committer_;
  Mover mover_;
  Splitter splitter_;
  Sweeper sweeper_;
  RoomMaker room_maker_;
  Changer changer_;
  Walker walker_;
};

}  // namespace farside::index::nessie

extern template class farside::index::KeyedIndex<farside::index::nessie::Table>;
