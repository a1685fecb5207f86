// A continuity table as one client has it open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/continuity/context.h"
#include "index/continuity/options.h"
#include "index/continuity/partition.h"
#include "index/continuity/request.h"
#include "index/continuity/segment.h"
#include "index/index.h"
#include "index/kit/growing_partitions.h"
#include "index/kit/keyed_index.h"
#include "pool/beats.h"
#include "pool/client.h"

namespace farside::index::continuity {

class Table final : public KeyedIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, const std::vector<fabric::FarAddr>& roots);

  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override;
  Task<TableStats> Stats(fabric::Op& op) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override;
  Task<Done> Verify(fabric::Op& op) override;
  void ConfirmTable(const pool::Membership& home, uint64_t catalog_changes) override;
  uint64_t growth() const override;

 private:
  friend class KeyedIndex<Table>;
  using SearchContext = continuity::SearchContext;
  using ChangeContext = continuity::ChangeContext;

  // For the driver of operations (kit/keyed_index.h).
  SearchContext ContextOf(fabric::Op& op, std::string_view key, std::string& value);
  ChangeContext ContextOf(fabric::Op& op, Change& change);
  Task<bool> TrySearch(SearchContext& context);
  Task<Attempt> TryChange(ChangeContext& context);

  // ---- search.cc
  // The table in which the pair of a key is read first.
  static TableWord FirstTable(const Root& root, uint64_t hash);
  // The table to which the pairs of this one are moved.
  static Task<TableWord> NextTable(fabric::Op& op, Partition& part, TableWord table);
  Task<bool> TakeIfFound(SearchContext& context, fabric::FarAddr pair, const Slot& slot);
  // What a slot of this pair says, by a trip if it stands in a block.
  static Task<Record> ReadRecord(fabric::Op& op, fabric::FarAddr pair, const Slot& slot);

  // ---- change.cc
  Task<Done> WriteMemory(ChangeContext& context);
  static ChangeRequest RequestOf(const ChangeContext& context);
  Task<Reply> CallChange(ChangeContext& context);
  Task<Done> Provide(ChangeContext& context, const Reply& reply);
  Task<Done> Grow(ChangeContext& context, uint64_t doublings);
  void RetireAll(ChangeContext& context, const Reply& reply);

  // ---- walk.cc
  // A pair with its group, as they were at one moment.
  struct FoundPair {
    fabric::FarAddr at;
    TableWord table;
    uint64_t number = 0;
    PairImage image;
  };
  // The pairs that have the records which belonged to this one when the table had doubled so often: it, or
  // those to which its records have moved.
  Task<std::vector<FoundPair>> ReadPairs(fabric::Op& op, Partition& part, uint32_t doublings,
                                         uint64_t number);
  // The same for a walk through the whole table: waits while handlers change the pair, under the walk's pin.
  Task<std::vector<FoundPair>> AwaitPairs(fabric::Op& op, Partition& part, uint32_t doublings,
                                          uint64_t number, pool::Beats& beats);
  // One attempt for a page.
  Task<bool> TryNext(fabric::Op& op, Cursor& cursor, std::vector<Record>& page);
  static Task<Done> ReadWhole(fabric::Op& op, fabric::FarAddr pair, PairImage& image);
  static std::vector<Slot> SlotsOf(const PairImage& image);
  Task<Done> WalkPart(fabric::Op& op, Partition& part, pool::Reach& reach);
  // Of a pair that a power cut has left with an odd sequence: lookups of its keys take one trip again.
  Task<Done> Settle(fabric::Op& op, const Partition& part, const FoundPair& pair);
  Task<Done> VerifyPair(fabric::Op& op, const Partition& part, const FoundPair& pair);

  GrowingPartitions<Partition> parts_;
};

}  // namespace farside::index::continuity

extern template class farside::index::KeyedIndex<farside::index::continuity::Table>;
