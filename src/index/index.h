// What every engine implements: a table of byte strings, as one client sees it.
//
// An Index belongs to one client of the pool; it holds only caches, and the table itself is in far memory.
// Keys and values are byte strings; arguments are views that stay valid until the task has ended. A missing
// key is an answer, never an error. Every operation reports how it ended through `op.End`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/address.h"
#include "fabric/trip.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/result.h"
#include "farside/task.h"

namespace farside::fabric {
class Op;
}  // namespace farside::fabric

namespace farside::pool {
class Membership;
class PoolClient;
class Reach;
}  // namespace farside::pool

namespace farside::index {

// What an upsert did. An engine that would need a trip to know answers kNotTold: two concurrent puts may both
// have found the key absent.
enum class PutOutcome : uint8_t { kInserted, kReplaced, kNotTold };

// One of several keys that are searched together.
struct Search {
  enum class Outcome : uint8_t {
    kOpen,   // not decided: perform a Get
    kFound,  // with the value
    kAbsent,
  };
  std::string_view key;
  std::string* value = nullptr;
  Outcome outcome = Outcome::kOpen;
};
// The most keys of one SearchTogether: as many READs as devices answer in one round trip.
inline constexpr size_t kMostTogether = fabric::kAnsweredVerbsPerRoundTrip;

using farside::Cursor;
using farside::Record;
using farside::TableStats;

class Index {
 public:
  virtual ~Index() = default;

  // True and `value` if the key is present.
  virtual Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) = 0;
  // Whether SearchTogether does anything.
  virtual bool searches_together() const { return false; }
  // Searches some keys, kMostTogether at most, by trips that they share: the fixed cost of a trip is paid
  // once for all of them. Each search is decided by itself, as by Get; a search that is not simple stays
  // open.
  virtual Task<Done> SearchTogether(fabric::Op& op, std::span<Search> searches);
  // Upsert.
  virtual Task<PutOutcome> Put(fabric::Op& op, std::string_view key, std::string_view value) = 0;
  // Only if absent. False: it was there and is unchanged.
  virtual Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) = 0;
  // Only if present. False: it is not there.
  virtual Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) = 0;
  // False: there was nothing to delete.
  virtual Task<bool> Delete(fabric::Op& op, std::string_view key) = 0;
  // Only if present with exactly `expected`. False: it is absent or differs.
  virtual Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                                   std::string_view desired) = 0;
  // Adds to an 8-byte little-endian counter; absent counts as 0. Returns the new value.
  virtual Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) = 0;

  // Continues a walk through all records, in no order: appends some of them to `page`. False: there are no
  // more, and nothing was appended. A key that is present from the first call to the last is returned at
  // least once.
  virtual Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) = 0;

  // ---- order, for engines with Traits::ordered; other engines fail with kInvalidArgument
  //
  // What a scan promises while other clients write: keys ascend, and none occurs twice. For every key of the
  // range up to the last one returned (or to the end of the range, if the scan says that there are no more),
  // what the scan says, a value or absence, was true at some moment between its call and its return. The
  // moments of different keys may differ.

  // Appends the records of the range in ascending order, `limit` (at least 1) at most. False: there are no
  // more beyond them. True: `limit` were appended, and there may be more. The bounds of the range are any
  // bytes, and may be longer than any key of the table: a scan continues from the last key with a zero byte
  // appended. The limit may be larger than memory.
  virtual Task<bool> Scan(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page);
  // The record with the greatest key of the range. False: the range is empty.
  virtual Task<bool> Last(fabric::Op& op, const KeyRange& range, Record& record);

  // Reads the whole table. Exact only while no client changes it.
  virtual Task<TableStats> Stats(fabric::Op& op) = 0;
  // An operation on the key comes soon: the index may prefetch memory of this client that the operation
  // needs.
  virtual void Anticipate(std::string_view /*key*/) {}
  // The catalog of its home was seen to have the table when so many changes of it were known. Told when the
  // table is opened and whenever it is validated, by the client that has it open (off/3).
  virtual void ConfirmTable(const pool::Membership& /*home*/, uint64_t /*catalog_changes*/) {}
  // How often the table has begun or ended a resize, as far as this client knows without a trip: odd while
  // one is under way. For display; nothing depends on it.
  virtual uint64_t growth() const { return 0; }

  // ---- moving records (evacuation.h)

  // Moves the record that stands in this block to another block that is free at hand: an update to the same
  // value, which takes effect only if the table still names this block (evac/1). `bytes` is what was read of
  // the block a while ago, and says which key to look for. False: the table does not name the block, or no
  // longer, or cannot move it. kOutOfMemory: no block is free at hand.
  virtual Task<bool> Touch(fabric::Op& op, fabric::FarAddr block, std::span<const std::byte> bytes);
  // After touches: unlinks those of the blocks that the table still names although no record stands in them.
  // An engine that unlinks a block when its record moves has nothing to do. True: there is more to do, as
  // soon as there is memory for it. To be awaited like an operation: the table was validated just now.
  virtual Task<bool> UnlinkTouched(fabric::Op& op);

  // Marks every block that the table owns, its roots included, as pool/memory/reach.h promises, while other
  // clients may change the table. The caller holds a pin.
  virtual Task<Done> Walk(fabric::Op& op, pool::Reach& reach) = 0;
  // Reads the whole table, while no client changes it, and fails with kCorrupt at the first broken invariant.
  virtual Task<Done> Verify(fabric::Op& op) = 0;
};

// Options as the user gives them, `k=v`.
using OptionMap = std::map<std::string, std::string, std::less<>>;

// What an engine with its options states about its tables. The library, the tools and the tests ask for this,
// never for the name of an engine.
struct Traits {
  // Tables keep their keys in order: Index::Scan and Last work.
  bool ordered = false;
  // Scans work, but each reads the whole table, whatever its range and limit are.
  bool scans_read_all = false;
  // Tables take only keys and only values of exactly so many bytes. None: they take any.
  std::optional<size_t> fixed_size = std::nullopt;
  // False for an engine that only measures the fabric: a key that was put may be absent, or have another
  // value.
  bool keeps_records = true;
  // All of a table is in far memory: a client that opens the pool after all others have left finds every
  // record.
  bool persistent = true;
  // Walk posts READs only, whatever state clients that died have left the table in.
  bool read_only_walk = false;
  // A change that was acknowledged survives a power cut of its node, if the pool is durable. Other engines
  // make no tables in durable pools.
  bool durable = false;
  // A new key may need index memory of another size than the blocks of deleted records: in a full pool,
  // deleting half of the records makes room for few new keys.
  bool grows_by_nodes = false;
};

// What a program expects to put into a table.
struct ExpectedRecords {
  uint64_t records = 0;               // in the whole table
  std::optional<size_t> key_bytes;    // of every key; none: keys differ in size, or it is not known
  std::optional<size_t> value_bytes;  // of every value
};

// An engine with its options fixed: makes tables and opens them.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  virtual Traits traits() const { return {}; }
  virtual uint32_t layout_version() const = 0;
  // Far memory of an empty table on each node, in bytes.
  virtual uint64_t empty_bytes() const = 0;
  // The options that change bytes, as they are recorded in the catalog.
  virtual OptionMap recorded_options() const = 0;
  // Sets of options with which tables of a few keys go through everything that large tables do; `farside
  // check` uses them.
  virtual std::vector<OptionMap> stress_options() const { return {OptionMap()}; }
  // Further sets of options that the conformance suite runs with, each by a name that becomes part of the
  // names of its tests.
  virtual std::map<std::string, OptionMap> conformance_options() const { return {}; }
  // The options that suit such a table. Empty: the defaults do.
  virtual OptionMap OptionsFor(const ExpectedRecords& /*expected*/) const { return {}; }

  // Makes an empty table in memory of the pool and returns its root on each of the nodes. No client can reach
  // it yet.
  virtual Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                                    std::vector<fabric::NodeId> nodes) = 0;
  // The view of one client, which must outlive it.
  virtual std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) = 0;
  // The part of a table with these roots that lies at this address, for traces: "bucket 3 head". Empty:
  // unknown.
  virtual std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const = 0;
};

}  // namespace farside::index
