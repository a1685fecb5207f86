// A registration: one client of the pool, with the tables that it has opened. A session has one at a time, and gets
// another when it was cut off.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/client.h"
#include "fabric/fabric.h"
#include "farside/result.h"
#include "index/tables.h"
#include "pool/client.h"
#include "store/session.h"
#include "store/table_state.h"

namespace farside::store {

// A table as this client sees it.
struct OpenedTable {
  // Whether an operation may begin: nothing was dropped since somebody looked (catalog/5).
  bool valid() const { return home->control().catalog_changes == table.validated_at; }
  index::Index& index() { return *table.index; }

  uint64_t id = 0;  // of the handle
  index::OpenTable table;
  const pool::Membership* home = nullptr;  // of the catalog entry
};

class Registration {
 public:
  // Connects, and joins the pool. `while_waiting` is called now and then while that takes long.
  template <class WhileWaiting>
  static Result<std::unique_ptr<Registration>> Join(fabric::Fabric& fabric,
                                                    const pool::ClientOptions& options,
                                                    WhileWaiting while_waiting);

  // Null if it was not opened yet. The table must be of this pool.
  OpenedTable* Find(const TableState& table) {
    if (table.slot >= tables_.size()) return nullptr;
    OpenedTable* const found = tables_[table.slot].get();
    return found != nullptr && found->id == table.id ? found : nullptr;
  }
  Result<OpenedTable*> Open(const TableState& table);

  fabric::Client& client() { return *client_; }
  pool::PoolClient& pool() { return session_->pool(); }
  Session& session() { return *session_; }

  // Cut off, or a completion was lost: nothing can be done with it any more.
  bool broken() const { return broken_; }
  void Break() { broken_ = true; }
  // Whether it goes on with some of the nodes only, because others are out of reach.
  bool degraded() const;
  // What PoolState::recoveries() said when it joined.
  uint64_t joined_at() const { return joined_at_; }
  void set_joined_at(uint64_t recoveries) { joined_at_ = recoveries; }

 private:
  Registration() = default;
  static Result<std::unique_ptr<Registration>> Connect(fabric::Fabric& fabric);
  Task<Done> JoinPool(fabric::Op& op, pool::ClientOptions options);

  // Destroyed in the opposite order.
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<Session> session_;
  std::vector<std::unique_ptr<OpenedTable>> tables_;  // by TableState::slot
  bool broken_ = false;
  uint64_t joined_at_ = 0;
};

// Runs a task that may have to wait for others, such as joining, leaving or dropping, and calls `while_waiting` whenever
// it does. Ends with kContended, and with the task abandoned, if `give_up` says so.
template <class T, class WhileWaiting, class GiveUp>
Result<T> RunBlocking(fabric::Client& client, Task<T> task, WhileWaiting while_waiting, GiveUp give_up) {
  // On fabrics that complete at once, only pauses come back here.
  task.Start();
  while (!task.done()) {
    if (!client.Poll()) {
      return Error(ErrorCode::kUnavailable, "the operation waits for something that is not in flight");
    }
    if (task.done()) break;
    while_waiting();
    if (give_up()) return Error(ErrorCode::kContended, "gave up waiting for other clients to move on");
  }
  return task.TakeResult();
}

template <class WhileWaiting>
Result<std::unique_ptr<Registration>> Registration::Join(fabric::Fabric& fabric,
                                                         const pool::ClientOptions& options,
                                                         WhileWaiting while_waiting) {
  Result<std::unique_ptr<Registration>> made = Connect(fabric);
  if (!made.ok()) return made;
  Registration& registration = **made;
  fabric::Op op(registration.client(), fabric::OpKind::kMaintenance);
  const Status joined = RunBlocking(registration.client(), registration.JoinPool(op, options), while_waiting,
                                    [] { return false; });  // joining is bounded by itself
  if (!joined.ok()) return joined.error();
  op.End(fabric::OpKind::kMaintenance, fabric::OpOutcome::kDone);
  return made;
}

}  // namespace farside::store
