// Session: the operations on the tables of a pool, for one thread.
//
//   Result<Session> session = pool.NewSession();
//   session->Put(users, "ada", "countess");
//   Result<std::optional<std::string>> ada = session->Get(users, "ada");
//
// A key has 0 bytes to 64 KiB and a value 0 bytes to 64 MiB, of any bytes; a larger one is kInvalidArgument.
// A missing key is an answer, not an error. Operations on one key are linearizable: each takes effect at one
// moment between its call and its return, for all sessions of the pool. There are no transactions over
// several keys.
//
// Errors. kOutcomeUnknown: the operation may have taken effect or not; read before you repeat it. Any other
// error: nothing was changed. kOutOfMemory: the pool is full; deletes and dropped tables make room.
// kNotFound: the table was dropped. A session that other clients took for dead and fenced (because the
// process was stopped for longer than a lease) joins the pool again by itself, and repeats the operation if
// it is certain that the operation changed nothing.
//
// A session is used by one thread at a time; hand it to another thread only between two calls. Have one for
// each thread. Sessions are cheap, but each one takes a client slot of the pool (PoolOptions::client_slots).
//
// On a session or a table that was moved from, and in a child of fork, every call is kInvalidArgument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "farside/range.h"
#include "farside/record.h"
#include "farside/result.h"
#include "farside/run_tasks.h"
#include "farside/table.h"
#include "farside/task.h"

namespace farside {

namespace store {
class PoolState;
class SessionState;
struct Access;
}  // namespace store

inline constexpr size_t kMaxKeyBytes = size_t{64} << 10;
inline constexpr size_t kMaxValueBytes = size_t{64} << 20;

// ---- the items of batches: what is asked, and the outcome ------------------------------------------------

struct GetItem {
  std::string_view key;
  std::string value = {};      // set if the key was found; the string's memory is reused
  Result<bool> found = false;  // or the error of this item
};

struct PutItem {
  std::string_view key;
  std::string_view value;
  Status status = OkStatus();
};

struct DeleteItem {
  std::string_view key;
  Result<bool> deleted = false;  // false: the key was absent
};

// The traffic of a session since it was made. A trip is one round trip to a memory node.
struct Traffic {
  uint64_t operations = 0;
  uint64_t trips = 0;              // of operations
  uint64_t maintenance_trips = 0;  // for the lease, and for memory that is given back; not part of `trips`
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
};

// The operations of a session as coroutines; see Session::Async.
class AsyncSession {
 public:
  Task<bool> Get(const Table& table, std::string_view key, std::string& value) const;
  Task<Done> Put(const Table& table, std::string_view key, std::string_view value) const;
  Task<bool> Insert(const Table& table, std::string_view key, std::string_view value) const;
  Task<bool> Update(const Table& table, std::string_view key, std::string_view value) const;
  Task<bool> Delete(const Table& table, std::string_view key) const;
  Task<bool> CompareAndSet(const Table& table, std::string_view key, std::string_view expected,
                           std::string_view desired) const;
  Task<uint64_t> Increment(const Table& table, std::string_view key, uint64_t delta = 1) const;
  Task<bool> Next(const Table& table, Cursor& cursor, std::vector<Record>& page) const;
  Task<bool> Scan(const Table& table, const KeyRange& range, size_t limit, std::vector<Record>& page) const;
  Task<bool> Next(const Table& table, RangeCursor& cursor, std::vector<Record>& page) const;
  Task<bool> Last(const Table& table, const KeyRange& range, Record& record) const;

 private:
  friend class Session;
  explicit AsyncSession(store::SessionState* state) : state_(state) {}

  store::SessionState* state_;  // null: of a session that was moved from
};

class Session {
 public:
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  // Leaves the pool, as Close does. Errors are ignored.
  ~Session();

  // Leaves the pool: gives the session's memory back, and waits until no other session reads what this one
  // has freed. If that fails, or takes longer than a lease, other sessions clean up later; no record is lost.
  // Afterwards every call is an error.
  Status Close();

  // ---- one key

  Result<std::optional<std::string>> Get(const Table& table, std::string_view key);
  // The same into a string of the caller: nothing is allocated if the string is large enough. False: the key
  // is absent, and `value` is unchanged.
  Result<bool> Get(const Table& table, std::string_view key, std::string& value);
  // Inserts the record, or replaces the value.
  Status Put(const Table& table, std::string_view key, std::string_view value);
  // Inserts the record if the key is absent. False: the key is present, and nothing was changed.
  Result<bool> Insert(const Table& table, std::string_view key, std::string_view value);
  // Replaces the value if the key is present. False: the key is absent.
  Result<bool> Update(const Table& table, std::string_view key, std::string_view value);
  // False: the key was absent.
  Result<bool> Delete(const Table& table, std::string_view key);
  // Replaces the value if the key is present with exactly the value `expected`. False: it is absent, or has
  // another value.
  Result<bool> CompareAndSet(const Table& table, std::string_view key, std::string_view expected,
                             std::string_view desired);
  // Adds to a counter, a value of 8 bytes, little-endian; an absent key counts as 0. Returns the new value,
  // modulo 2^64. kInvalidArgument if the value has another size than 8 bytes.
  Result<uint64_t> Increment(const Table& table, std::string_view key, uint64_t delta = 1);

  // ---- many keys
  //
  // The trips of some dozen items overlap, and searches share trips if the engine supports it.
  //
  // Each item has its own outcome; the return value is OK, or the error of the first item that has one. Items
  // take effect in any order, so a key should occur only once. Keys and values are views: their bytes must
  // stay valid until the call returns. A program that reuses its items for the next call allocates nothing.

  Status MultiGet(const Table& table, std::span<GetItem> items);
  Status MultiPut(const Table& table, std::span<PutItem> items);
  Status MultiDelete(const Table& table, std::span<DeleteItem> items);

  // ---- all keys

  // The next page of a walk through all records, in no order: replaces `page` by some more records. False:
  // there are no more. A key that is present from the first call to the last is returned at least once. A key
  // that is inserted or deleted meanwhile may be returned or not.
  //
  //   Cursor cursor;
  //   std::vector<Record> page;
  //   while (true) {
  //     Result<bool> more = session.Next(table, cursor, page);
  //     if (!more.ok()) return more.error();
  //     if (!*more) break;
  //     for (const Record& record : page) ...
  //   }
  Result<bool> Next(const Table& table, Cursor& cursor, std::vector<Record>& page);
  // Reads the whole table. Exact only while no session changes it.
  Result<TableStats> Stats(const Table& table);

  // ---- ranges of keys
  //
  // For tables that keep their keys in order (Table::ordered). On other tables these calls are
  // kInvalidArgument.
  //
  // A scan is not a snapshot. While other sessions write, these rules hold: keys ascend, and none occurs
  // twice. What the scan says about each key of the range, a value or absence, was true at some moment
  // between call and return, for every key up to the last one returned, or up to the end of the range if the
  // scan says that there are no more. The moments of different keys may differ.

  // The first `limit` (at least 1) records of the range, in ascending order of their keys.
  Result<std::vector<Record>> Scan(const Table& table, const KeyRange& range, size_t limit);
  // The same into a page of the caller, whose memory is reused. False: the range has no more records; true:
  // it may have more.
  Result<bool> Scan(const Table& table, const KeyRange& range, size_t limit, std::vector<Record>& page);
  // The next page of a scan: replaces `page` by the next records of the range, in order. False: there are no
  // more.
  //
  //   RangeCursor cursor{.rest = KeyRange::Prefix("user:")};
  //   std::vector<Record> page;
  //   while (true) {
  //     Result<bool> more = session.Next(table, cursor, page);
  //     if (!more.ok()) return more.error();
  //     if (!*more) break;
  //     for (const Record& record : page) ...
  //   }
  Result<bool> Next(const Table& table, RangeCursor& cursor, std::vector<Record>& page);
  // The record with the smallest or the greatest key of the range, if the range has any.
  Result<std::optional<Record>> First(const Table& table, const KeyRange& range = KeyRange::All());
  Result<std::optional<Record>> Last(const Table& table, const KeyRange& range = KeyRange::All());

  // ---- coroutines
  //
  // Async() has the operations as tasks. Await them in your own coroutines, and let Run or RunAll run those
  // on this thread:
  //
  //   Task<Done> Move(AsyncSession session, const Table& table, std::string_view from, std::string_view to) {
  //     std::string value;
  //     bool found = co_await session.Get(table, from, value);   // an error ends Move with it (task.h)
  //     if (!found) co_return Error(ErrorCode::kNotFound, "nothing to move");
  //     co_await session.Put(table, to, value);
  //     co_await session.Delete(table, from);
  //     co_return Done{};
  //   }
  //   Status moved = session.Run(Move(session.Async(), table, "a", "b"));
  //
  // Tasks are lazy. A task keeps references to the table, keys, values, ranges, cursors and pages that it was
  // given; they must stay valid until it has ended. Inside a task, use Async() and not the session, which is
  // busy running the task. Destroy all tasks before the session.

  AsyncSession Async();

  // Runs the task to its end.
  template <class T>
  Result<T> Run(Task<T> task) {
    const Status ran = RunAll(std::span(&task, 1));
    if (!ran.ok()) return ran.error();
    return task.TakeResult();
  }

  // Runs all tasks at once, so that their trips overlap. Take the result of each one afterwards
  // (Task::TakeResult).
  template <class T>
  Status RunAll(std::span<Task<T>> tasks) {
    Running running(*this, tasks.size());
    if (!running.status().ok()) return running.status();
    for (const Task<T>& task : tasks) {
      if (!task.valid()) return MovedFromTask();
    }
    if (!RunTasks(tasks, [&running] { return running.Poll(); })) return running.Stuck();
    return OkStatus();
  }

  Traffic traffic() const;

  // Used by the library itself.
  Session(std::shared_ptr<store::PoolState> pool, std::unique_ptr<store::SessionState> state);

 private:
  friend struct store::Access;

  // While it exists, the session runs tasks.
  class Running {
   public:
    Running(Session& session, size_t tasks);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    const Status& status() const { return status_; }
    // Makes progress. False: the tasks would wait forever, and Stuck says why.
    bool Poll();
    Error Stuck() const;

   private:
    store::SessionState* state_;
    Status status_;
  };
  static Error MovedFromTask();
  // Leaves the pool, but not in a child of fork.
  void End() noexcept;

  std::shared_ptr<store::PoolState> pool_;  // outlives the state
  std::unique_ptr<store::SessionState> state_;
};

}  // namespace farside
