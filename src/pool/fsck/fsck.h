// Fsck: what every byte of a node's region is, and what is wrong with it.
//
//   Reached reached;                                  // for all nodes
//   for each table: reached.BeginTable(name); walk it, with `reached` as its Reach
//   FsckReport report = co_await Fsck(op, node, geometry, reached, options);
//
// It only READs. The answer is exact when no other client uses the pool; clients that do cause findings that
// are gone when fsck runs again. Whatever the bytes are, the answer is a report, or the error of a fabric
// that cannot be reached.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/memory/reach.h"
#include "pool/region/layout.h"

namespace farside::pool {

enum class Severity : uint8_t {
  kNote,    // the next client of the pool puts it in order, or a client uses it right now
  kLeak,    // memory that no client can use any more; nothing else is wrong
  kDamage,  // bytes that no correct client wrote
};

struct Finding {
  Severity severity = Severity::kNote;
  fabric::FarAddr where;
  std::string what;
  std::string advice;
};

// What walks have reached: the blocks of the tables, on all nodes.
class Reached final : public Reach {
 public:
  // What is marked from now on belongs to this table.
  void BeginTable(std::string name) { tables_.push_back(std::move(name)); }

  void Mark(fabric::FarAddr block, uint64_t bytes) override { Add(block, bytes, false, 0); }
  // The bytes of a key and its value can be checked.
  void MarkBlock(fabric::FarAddr block, uint64_t bytes, uint64_t prefix) override {
    Add(block, bytes, true, prefix);
  }

 private:
  friend class NodeCheck;

  struct Entry {
    fabric::FarAddr at;
    uint64_t bytes = 0;
    uint32_t table = 0;  // index into tables_, counted from 1; 0: none was begun
    bool is_block = false;
    uint64_t prefix = 0;  // bytes in front of the key and its value
  };

  void Add(fabric::FarAddr block, uint64_t bytes, bool is_block, uint64_t prefix) {
    marks_.push_back(Entry{block, bytes, static_cast<uint32_t>(tables_.size()), is_block, prefix});
  }
  std::string TableOf(const Entry& mark) const {
    return mark.table == 0 ? "a table" : "table " + tables_[mark.table - 1];
  }

  std::vector<std::string> tables_;
  std::vector<Entry> marks_;
};

struct FsckOptions {
  // The client that checks, if it is registered. It must have nothing in flight, and nothing to give back.
  std::optional<Owner> self;
  // No client runs, as when a file is checked that no process has open: every registered client has died
  // without being fenced.
  bool no_client_runs = false;
  // READs the blocks that were marked as such, and checks their bytes.
  bool read_blocks = true;
  // Every table was walked to its end. If not, it is unknown whether what was not reached is leaked.
  bool all_walked = true;
  // Told now and then how many chunks have been checked.
  std::function<void(uint64_t chunks)> progress = {};
};

// Every byte of the region is counted in exactly one of these.
struct FsckBytes {
  uint64_t metadata = 0;  // superblock, registry, catalog, chunk table
  uint64_t free_chunks = 0;
  uint64_t overhead = 0;     // bitmaps, and what is left over in chunks of blocks and behind the last chunk
  uint64_t reachable = 0;    // by a table
  uint64_t free_blocks = 0;  // given back, in chunks of blocks
  uint64_t held = 0;         // not reachable, but perhaps in the hands of a living client
  uint64_t abandoned = 0;    // of dead clients; the adopter sweeps it
  uint64_t leaked = 0;
  uint64_t unknown = 0;  // not reached, when not every table could be walked
  uint64_t damaged = 0;  // not even its kind is known

  uint64_t Total() const;
  friend bool operator==(const FsckBytes&, const FsckBytes&) = default;
};

struct FsckCounts {
  uint64_t chunks = 0;
  uint64_t chunks_free = 0;
  uint64_t chunks_of_blocks = 0;
  uint64_t extents = 0;
  uint64_t extents_broken = 0;    // a part is missing: died with its owner, or is just being made or freed
  uint64_t blocks_reachable = 0;  // with extents
  uint64_t blocks_read = 0;       // and found whole, or not
  uint64_t clients_live = 0;      // with joining clients
  uint64_t clients_fenced = 0;
  uint64_t tables_live = 0;
  uint64_t tables_half_made = 0;  // in creation, or being dropped
};

struct FsckReport {
  // The first so many of them; all are counted.
  static constexpr size_t kMostFindings = 1000;

  bool ok() const { return leaks == 0 && damages == 0; }
  void Add(Severity severity, fabric::FarAddr where, std::string what, std::string advice);

  FsckBytes bytes;
  FsckCounts counts;
  std::vector<Finding> findings;
  uint64_t notes = 0;
  uint64_t leaks = 0;
  uint64_t damages = 0;
};

// Checks the region of one node. `geometry` is that of its superblock, or what it ought to be.
Task<FsckReport> Fsck(fabric::Op& op, fabric::NodeId node, Geometry geometry, const Reached& reached,
                      FsckOptions options);

}  // namespace farside::pool
