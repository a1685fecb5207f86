// Pool: far memory with tables in it, opened by a URL and shared by the threads of a process.
//
//   Result<Pool> pool = Pool::Open("embedded:?size=1GiB");
//   Result<Table> users = pool->CreateTable("users");
//   Result<Session> session = pool->NewSession();              // one for each thread
//
// A Pool and a Table are handles: cheap to copy, safe to use from any thread, and whoever holds one (or a Session) keeps
// the pool open. The examples/ folder has four small programs, and docs/api.md goes through them.
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
  // Who shows no sign of life for this long may be taken for dead by others, and cut off. Sessions give signs of life as
  // long as the process runs, whether they are used or not, so this is for processes that stop.
  std::chrono::milliseconds lease = std::chrono::seconds(10);

  // Of a pool that is made; one that exists keeps what it was made with.
  uint32_t client_slots = 64;  // sessions at a time; the pool itself takes one
  uint32_t table_slots = 64;   // tables per node
};

struct TableOptions {
  // "shard", "reference", ...; empty: the default engine.
  std::string engine;
  // As the engine knows them, {"buckets", "1024"}. An unknown one is an error.
  std::map<std::string, std::string, std::less<>> options;
};

// What the pool knows about a table.
struct TableInfo {
  std::string name;
  std::string engine;
  std::map<std::string, std::string, std::less<>> options;  // with which it was made
};

class Pool {
 public:
  // Opens a pool, and makes it first where the URL says so:
  //
  //   embedded:                        memory of this process, fresh, 256MiB
  //   embedded:?size=1GiB&nodes=3      three memory nodes of 1 GiB each
  //   file:pool.farside                a file that exists
  //   file:pool.farside?size=1GiB      the same; made if it does not exist
  //   shm:NAME                         a memory node on this machine (farside serve --shm NAME)
  //   tcp://HOST:PORT                  a memory node anywhere (farside serve --listen); several: HOST:PORT,HOST:PORT
  //   tcp://HOST:PORT?ca=PATH&cert=PATH&key=PATH    with TLS, as every address but loopback needs
  //
  // A file is open in one process at a time; all of its threads share the Pool.
  static Result<Pool> Open(std::string_view url, const PoolOptions& options = {});

  // Makes an empty table; kAlreadyExists if there is one of this name. Names have 1 to 128 bytes of UTF-8 without
  // control characters and '/'.
  Result<Table> CreateTable(std::string_view name, const TableOptions& options = {});
  // kNotFound if there is none.
  Result<Table> OpenTable(std::string_view name);
  // Opens the table, or makes it if there is none. kAlreadyExists if `options` name an engine or options and there is one
  // with others.
  Result<Table> OpenOrCreateTable(std::string_view name, const TableOptions& options = {});
  // Frees everything that the table has. Returns when all sessions of the pool have noticed: operations on it end with
  // kNotFound from then on, also if a new table gets the name.
  Status DropTable(std::string_view name);
  // In the order of their names.
  Result<std::vector<TableInfo>> ListTables();

  // A new member of the pool, for one thread. kOutOfMemory if all client slots are taken.
  Result<Session> NewSession();

  // Leaves the pool, and tells if that went wrong. All sessions must have been closed. Afterwards every call on any copy
  // of this handle is an error. Without it, the pool is closed when the last handle, table and session are gone.
  Status Close();

  // For the library itself.
  explicit Pool(std::shared_ptr<store::PoolState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<store::PoolState> state_;
};

}  // namespace farside
