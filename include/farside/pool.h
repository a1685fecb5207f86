// Pool: far memory with tables in it, opened by a URL and shared by the threads of a process.
//
//   Result<Pool> pool = Pool::Open("embedded:?size=1GiB");
//   Result<Table> users = pool->CreateTable("users");
//   Result<Session> session = pool->NewSession();              // one for each thread
//
// A Pool and a Table are handles: cheap to copy, and safe to use from any thread. The pool stays open as long
// as any handle or session of it exists. docs/api.md goes through four small programs, which are in the
// folder examples/.
//
// A child of fork inherits no pool. Every call on a handle of its parent is kInvalidArgument there, and
// destructors do nothing; the child may open a pool itself. Calls on a pool that was moved from are
// kInvalidArgument, too.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "farside/result.h"
#include "farside/session.h"

namespace farside {

namespace store {
class PoolState;
}  // namespace store

struct PoolOptions {
  // Other clients fence a session that is silent for this long: they take it for dead. The library keeps all
  // sessions of a running process alive, idle ones included, so this matters only when the process stops or
  // hangs.
  std::chrono::milliseconds lease = std::chrono::seconds(10);

  // These are for a pool that Open makes. A pool that exists keeps the numbers that it was made with.
  uint32_t client_slots = 64;  // sessions at a time, of all processes; every open Pool takes one more
  uint32_t table_slots = 64;   // tables per node, at most 131,072
};

struct TableOptions {
  // "shard", "chime", "sephash", "nessie", "reference"; empty: the default engine, shard.
  std::string engine;
  // The engine's own options, such as {"buckets", "1024"}. An option that the engine does not have is an
  // error.
  std::map<std::string, std::string, std::less<>> options;
};

// What the pool knows about a table.
struct TableInfo {
  std::string name;
  std::string engine;
  std::map<std::string, std::string, std::less<>> options;  // that it was made with
};

class Pool {
 public:
  // Opens the pool that the URL names:
  //
  //   embedded:                        a new pool in the memory of this process, 256 MiB
  //   embedded:?size=1GiB&nodes=3      the same with three memory nodes of 1 GiB each
  //   file:pool.farside                a pool in a file, which must exist
  //   file:pool.farside?size=1GiB      the same; the file is made if it does not exist
  //   shm:NAME                         a memory node on this machine (farside serve --shm NAME)
  //   tcp://HOST:PORT                  a memory node on any machine (farside serve --listen)
  //   tcp://HOST:PORT,HOST:PORT        several of them
  //   tcp://HOST:PORT?ca=PATH&cert=PATH&key=PATH    with TLS, which every address but loopback needs
  //
  // Only one process at a time can open a file; its threads share one Pool.
  static Result<Pool> Open(std::string_view url, const PoolOptions& options = {});

  // Makes an empty table; kAlreadyExists if the pool has a table of this name. A name has 1 to 128 bytes of
  // UTF-8, without control characters and without '/'.
  Result<Table> CreateTable(std::string_view name, const TableOptions& options = {});
  // kNotFound if the pool has no table of this name.
  Result<Table> OpenTable(std::string_view name);
  // Opens the table, or makes it if there is none. kAlreadyExists if there is one, `options` name an engine
  // or options, and the table was made with others.
  Result<Table> OpenOrCreateTable(std::string_view name, const TableOptions& options = {});
  // Frees all memory of the table. When the call returns, the memory can be used again, and every session of
  // the pool knows that the table is gone, or learns it before its next operation: operations through old
  // handles end with kNotFound, even if a new table of the same name exists.
  Status DropTable(std::string_view name);
  // All tables of the pool, sorted by name.
  Result<std::vector<TableInfo>> ListTables();

  // A new session, for one thread. kOutOfMemory if all client slots are taken.
  Result<Session> NewSession();

  // Closes the pool, and reports what went wrong. All sessions must be closed before. Afterwards every call
  // on any copy of this handle is an error. Without this call, the pool closes when its last handle, table
  // and session end, and errors are ignored.
  Status Close();

  // Used by the library itself.
  explicit Pool(std::shared_ptr<store::PoolState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<store::PoolState> state_;
};

}  // namespace farside
