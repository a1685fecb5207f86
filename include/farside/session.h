// Session: what one thread uses the tables of a pool through.
//
//   Result<Session> session = pool.NewSession();
//   session->Put(users, "ada", "countess");
//   Result<std::optional<std::string>> ada = session->Get(users, "ada");
//
// Keys have 0 bytes to 64 KiB and values 0 bytes to 64 MiB, any bytes; larger ones are kInvalidArgument. A missing key is
// an answer, not an error. Operations on one key are linearizable: each takes effect at one moment between its call and
// its return, for all sessions of the pool alike. There are no transactions over several keys.
//
// What errors mean. kOutcomeUnknown: the operation may have happened, or not; look before repeating it. Any
// other: nothing was changed. kOutOfMemory: the pool is full; deletes and dropped tables make room.
// kNotFound: the table was dropped. A session that was cut off because it was taken for dead (the process was
// stopped for longer than a lease) joins the pool anew by itself, and repeats the operation if it is certain
// that it changed nothing.
//
// A session belongs to one thread at a time: hand it to another one only between two calls. Use as many as there are
// threads; they are cheap, but each is a client of the pool, of which there are PoolOptions::client_slots at most.
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

// ---- the items of batches: what is asked, and what came of it --------------------------------------------

struct GetItem {
  std::string_view key;
  std::string value = {};      // set if the key was found; its memory is used again
  Result<bool> found = false;  // or the error of this item
};

struct PutItem {
  std::string_view key;
  std::string_view value;
  Status status = OkStatus();
};

struct DeleteItem {
  std::string_view key;
  Result<bool> deleted = false;  // false: there was nothing to delete
};

// What a session has asked of far memory since it was made. A trip is one round trip to a memory node.
struct Traffic {
  uint64_t operations = 0;
  uint64_t trips = 0;              // of operations; those for maintenance are apart
  uint64_t maintenance_trips = 0;  // signs of life, giving memory back
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
  explicit AsyncSession(store::SessionState& state) : state_(&state) {}

  store::SessionState* state_;
};

class Session {
 public:
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  // Leaves the pool as Close does, but gives up after a lease at most, and tells nobody.
  ~Session();

  // Leaves the pool: gives memory back, and waits until nobody needs what this session has freed. If that fails, or takes
  // longer than a lease, others find what it has left, and no record is lost. Afterwards every call is an error.
  Status Close();

  // ---- one key

  Result<std::optional<std::string>> Get(const Table& table, std::string_view key);
  // The same into a string that is there already, so that nothing is allocated if it is large enough. False: the key is
  // absent, and `value` is what it was.
  Result<bool> Get(const Table& table, std::string_view key, std::string& value);
  // Inserts the record, or replaces the value.
  Status Put(const Table& table, std::string_view key, std::string_view value);
  // Only if the key is absent. False: it is there, and was not changed.
  Result<bool> Insert(const Table& table, std::string_view key, std::string_view value);
  // Only if the key is there. False: it is absent.
  Result<bool> Update(const Table& table, std::string_view key, std::string_view value);
  // False: there was nothing to delete.
  Result<bool> Delete(const Table& table, std::string_view key);
  // Only if the key is there with exactly this value. False: it is absent, or has another one.
  Result<bool> CompareAndSet(const Table& table, std::string_view key, std::string_view expected,
                             std::string_view desired);
  // Adds to a counter, a value of 8 bytes, little-endian; an absent one counts as 0. Returns what it is now, modulo 2^64.
  // kInvalidArgument if the value has another size.
  Result<uint64_t> Increment(const Table& table, std::string_view key, uint64_t delta = 1);

  // ---- many keys: their trips overlap, some dozen at a time, and keys that are searched share them if the engine can do that
  //
  // Each item has its own outcome; the return value is OK, or the error of the first item that has one. Items take effect
  // in any order, so a key should not be there twice. Keys and values are views: they must stay until the call returns.
  // Keep the items for the next call, and nothing is allocated.

  Status MultiGet(const Table& table, std::span<GetItem> items);
  Status MultiPut(const Table& table, std::span<PutItem> items);
  Status MultiDelete(const Table& table, std::span<DeleteItem> items);

  // ---- all keys

  // Goes on with a walk through the table, in no order: `page` becomes the next few records. False: there are no more. A
  // key that is there from the first call to the last is returned at least once; one that comes or goes may be.
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
  // Looks through the whole table. Exact only while nobody changes it.
  Result<TableStats> Stats(const Table& table);

  // ---- ranges of keys
  //
  // For tables that keep their keys in order (Table::ordered); the others refuse with kInvalidArgument.
  //
  // A scan is no snapshot. While others write, its keys ascend and none comes twice, and what it says about each key of the
  // range, a value or absence, was true at some moment between call and return: for every key up to the last one returned,
  // or up to the end of the range if it says that there are no more. Different keys may be of different moments.

  // The records of the range in ascending order of their keys, the first `limit` (at least 1) of them.
  Result<std::vector<Record>> Scan(const Table& table, const KeyRange& range, size_t limit);
  // The same into a page that is there already, whose memory is used again. False: there are no more beyond them; true:
  // there may be.
  Result<bool> Scan(const Table& table, const KeyRange& range, size_t limit, std::vector<Record>& page);
  // Goes on with a scan: `page` becomes the next records of the range, in order. False: there are no more.
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
  // The record with the smallest or the greatest key of the range, if there is any.
  Result<std::optional<Record>> First(const Table& table, const KeyRange& range = KeyRange::All());
  Result<std::optional<Record>> Last(const Table& table, const KeyRange& range = KeyRange::All());

  // ---- coroutines
  //
  // Async() has the operations as tasks, to be awaited in coroutines of your own, which Run or RunAll run on this thread:
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
  // Tasks are lazy, and keep references: to the table, keys, values, ranges, cursors and `page`, which must stay until the task has ended.
  // Inside of a task, use Async() and not the session itself, which is busy running the task. Tasks must be gone before the
  // session is.

  AsyncSession Async();

  // Runs the task to its end.
  template <class T>
  Result<T> Run(Task<T> task) {
    const Status ran = RunAll(std::span(&task, 1));
    if (!ran.ok()) return ran.error();
    return task.TakeResult();
  }

  // Runs all of them at once, so that their trips overlap. Take each one's result afterwards (Task::TakeResult).
  template <class T>
  Status RunAll(std::span<Task<T>> tasks) {
    Running running(*this, tasks.size());
    if (!running.status().ok()) return running.status();
    if (!RunTasks(tasks, [&running] { return running.Poll(); })) return Stuck();
    return OkStatus();
  }

  Traffic traffic() const;

  // For the library itself.
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
    // Makes progress. False: nothing is in flight, so waiting longer would be for ever.
    bool Poll();

   private:
    store::SessionState* state_;
    Status status_;
  };
  static Error Stuck();

  std::shared_ptr<store::PoolState> pool_;  // outlives the state
  std::unique_ptr<store::SessionState> state_;
};

}  // namespace farside
