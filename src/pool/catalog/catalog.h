// The catalog of one node: the tables whose home it is.
//
// The home of a table follows from its name, by rendezvous hashing over the nodes of the pool, so that no
// node is special and clients agree without asking. Its entry stands there alone and names all nodes of the
// table, with the root of the table's part on each: if the home is lost, the table cannot be opened any more,
// though its parts on other nodes are whole. (A copy on each node would need all of their locks at once;
// export a table that must not be lost.) The nodes of a pool do not change while it has tables.
//
// Invariants
//   catalog/1  A name is live at most once. Only the holder of the lock claims an entry, and it has looked
//              the name up.
//   catalog/2  The body of an entry is complete before its state becomes kLive, and does not change before
//              the entry is claimed again. Checksum and incarnation prove to a reader that it saw one body,
//              whole.
//   catalog/3  The CAS to kLive creates the table, and the CAS to kDropping drops it; nothing else decides
//              anything. A creator that dies before the one, or a dropper that dies after the other, leaves
//              an entry that does not count and bytes that no table reaches: a sweep finds them.
//   catalog/4  A drop is announced, by raising catalog_changes, after the state became kDropping and before
//              it becomes kFree. So a client that sees kFree knows that it was announced, and a client that
//              acts on kDropping announces it.
//   catalog/5  When every client has published an epoch larger than one that was read after the announcement,
//              no client is inside an operation on the table. For each client read that larger epoch in a
//              sync, in one line with catalog_changes, after the announcement; so it saw catalog_changes
//              differ from what it had validated its tables at, and asks StillThere before it begins another
//              operation on them; and by pool/1 all operations that it had in flight when it published had
//              begun after that sync.
//
// The rule that catalog/5 lays on users: an open table remembers control().catalog_changes as it was known
// before its entry was read; an operation that begins when it is another one first asks StillThere.
//
// What of it is durable, in a durable pool: region/recover.h (durable/3, durable/4).
//
//   step of Create           seen by others if the client dies then     cleaned up by
//   lock                     nothing                                    the next holder takes the lock over
//   free -> creating         nothing                                    the next holder frees the entry
//   make_roots               nothing; bytes that no table reaches       a sweep
//   body, creating -> live   the table                                  -
//   announce, unlock         the table                                  the next holder takes the lock over
//
//   step of Drop             seen by others if the client dies then     cleaned up by
//   live -> dropping         the name is free, the table still in use   the next holder announces, and frees
//   announce                 no client begins to use it any more        the next holder frees the entry
//   grace, free_table        bytes that no table reaches                a sweep
//   dropping -> free         nothing                                    -
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/catalog/layout.h"
#include "pool/members/membership.h"

namespace farside::pool {

// What is to be created.
struct TableSpec {
  std::string name;
  std::string engine;
  std::string options;  // as the engine wrote them: those that change bytes
  uint32_t engine_layout_version = 0;
  std::vector<fabric::NodeId> nodes;
};

// What the catalog says about a table.
struct TableInfo {
  std::string name;
  std::string engine;
  std::string options;
  uint32_t engine_layout_version = 0;
  uint32_t incarnation = 0;  // with `entry`, no other table of this pool ever has it
  std::vector<fabric::NodeId> nodes;
  std::vector<fabric::FarAddr> roots;  // one for each node; offset 0: the engine keeps no root there
  fabric::FarAddr entry;               // where the catalog says so
};

struct CreateOutcome {
  TableInfo table;
  bool created = false;  // false: it was there already, perhaps with other options
};

// The node whose catalog has the entry of a table, in a pool of so many nodes.
fabric::NodeId HomeOf(std::string_view name, size_t nodes);

// 1 to 128 bytes of UTF-8 without control characters, because names are printed (also as JSON); without '/',
// and not "." or "..", because they become parts of URLs and names of files.
Status CheckTableName(std::string_view name);

// What a body says, if it is that of a live table with this word. It comes from far memory: anything is
// possible. `region_bytes` are the sizes of the regions of all nodes.
Result<TableInfo> DecodeTable(const TableEntry& entry, fabric::FarAddr at,
                              std::span<const uint64_t> region_bytes);
// The body of a table that DecodeTable accepts; sizes must have been checked.
TableBody EncodeTable(const TableInfo& table);

class Catalog {
 public:
  // Allocates and writes an empty table, and returns one root for each node. It is told everything but the
  // roots. It runs under the lock of the catalog, so it must keep the client alive if it takes long
  // (PoolClient::Sync). What it allocates is reachable when Create has ended: the operation to which it
  // belongs (PoolClient::Pin) begins here, not before the lock was waited for, and ends after Create. If it
  // fails, it gives back what it has allocated.
  using MakeRoots = std::function<Task<std::vector<fabric::FarAddr>>(fabric::Op&, TableInfo)>;
  // Returns when every client has moved past the call (PoolClient::AfterGrace). No operation of this client
  // may be in flight on the table.
  using WaitForGrace = std::function<Task<Done>(fabric::Op&)>;
  // Retires or gives back every byte of the table; no other client uses it any more.
  using FreeTable = std::function<Task<Done>(fabric::Op&, TableInfo)>;

  // `member` is that of the node whose catalog it is. Only Create, Drop and TablesToWalk need it to have
  // joined.
  explicit Catalog(Membership& member) : member_(member) {}

  // Creates the table, or finds that one of this name is there already. Begun, it must be run to its end: a
  // client that abandons it keeps the lock until it dies.
  Task<CreateOutcome> Create(fabric::Op& op, TableSpec spec, MakeRoots make_roots);
  // kNotFound if there is no such table.
  Task<TableInfo> Open(fabric::Op& op, std::string name);
  // All live tables of this catalog, in the order of their names.
  Task<std::vector<TableInfo>> List(fabric::Op& op);
  // Whether a table that was opened is still that table: one small READ.
  Task<bool> StillThere(fabric::Op& op, TableInfo table);
  // Drops the table and frees what it occupied. An error after the drop was decided says so: the name is free
  // then, and a sweep finds what is left.
  Task<Done> Drop(fabric::Op& op, std::string name, WaitForGrace wait_for_grace, FreeTable free_table);

  // What a sweep has to walk, in one operation that is in flight from before this call to the end of the
  // walk. What it does not reach may be freed after another grace period. kContended while a living client is
  // freeing a table, for two would free the same bytes: sweep later. So too, in a durable pool of several
  // nodes, while a living client makes one (durable/7).
  Task<std::vector<TableInfo>> TablesToWalk(fabric::Op& op);

 private:
  using Entries = std::vector<TableEntry>;
  struct Found;

  fabric::FarAddr EntryAt(uint32_t slot) const { return member_.At(member_.geometry().table_entry(slot)); }

  Task<Entries> ReadEntries(fabric::Op& op);
  // Whether this client has to make durable what it acts on. One that is no member, or may only read, acts on
  // nothing that lasts.
  bool durable() const;
  Task<Done> MakeEntriesDurable(fabric::Op& op, const Entries& entries);
  Task<Done> MakeStateDurable(fabric::Op& op, fabric::FarAddr entry);
  Task<TableInfo> DecodeOrReadAgain(fabric::Op& op, TableEntry entry, uint32_t slot);
  Task<Found> LookUp(fabric::Op& op, Entries entries, std::string name);

  Task<CreateOutcome> CreateLocked(fabric::Op& op, TableSpec spec, MakeRoots make_roots);
  Task<TableInfo> Fill(fabric::Op& op, TableInfo table, TableWord claimed, MakeRoots make_roots);
  Task<bool> MakeLiveDurably(fabric::Op& op, const TableInfo& table, TableWord claimed,
                             const TableBody& body);
  Task<TableInfo> DropLocked(fabric::Op& op, std::string name);
  Task<Done> Free(fabric::Op& op, TableInfo table, WaitForGrace wait_for_grace, FreeTable free_table);
  Task<Done> Lock(fabric::Op& op);
  Task<Done> Unlock(fabric::Op& op);
  Task<Done> Announce(fabric::Op& op);
  Task<Entries> ReadAndTidy(fabric::Op& op);
  Task<bool> IsBeingMade(fabric::Op& op, TableEntry entry);
  Task<bool> FinishDrop(fabric::Op& op, TableEntry entry, uint32_t slot);

  Membership& member_;
};

}  // namespace farside::pool
