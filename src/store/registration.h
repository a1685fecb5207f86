// A registration: one client that is a member of the pool, and the tables of the pool as that client sees
// them. A session has one at a time, and registers anew when its client was fenced.
//
//   fabric::Op op(client, fabric::OpKind::kMaintenance);
//   std::unique_ptr<Registration> self = co_await Registration::Join(op, client, MakeEngine, options);
//   index::OpenTable table = co_await self->tables().Open(op, "users");
//   ...
//   co_await self->Leave(op);
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/client.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/evacuation.h"
#include "index/tables.h"
#include "pool/client.h"
#include "store/table_state.h"

namespace farside::store {

// A table as this client sees it.
struct OpenedTable {
  // Whether an operation may begin: no table was dropped since this one was last validated (catalog/5).
  bool valid() const { return home->control().catalog_changes == table.validated_at; }
  index::Index& index() { return *table.index; }

  uint64_t id = 0;  // of the handle
  index::OpenTable table;
  const pool::Membership* home = nullptr;  // on the node that has the table's catalog entry
};

class Registration {
 public:
  // Reads the superblock of every node that the client reaches, and joins the pool. The client must outlive
  // the registration, or be given to it (OwnClient).
  static Task<std::unique_ptr<Registration>> Join(fabric::Op& op, fabric::Client& client,
                                                  index::FindEngine find_engine, pool::ClientOptions options);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  // The client that joined ends with the registration.
  void OwnClient(std::unique_ptr<fabric::Client> client) { owned_client_ = std::move(client); }
  // Gives all memory back, and deregisters. No operation may be in flight, and none may follow.
  Task<Done> Leave(fabric::Op& op) { return pool_->Leave(op); }

  fabric::Client& client() { return pool_->client(); }
  pool::PoolClient& pool() { return *pool_; }
  index::Tables& tables() { return tables_; }

  // ---- tables by handle
  // Null if this client has not opened the table yet. The table must be of this pool.
  OpenedTable* Find(const TableState& table) {
    if (table.slot >= opened_.size()) return nullptr;
    OpenedTable* const found = opened_[table.slot].get();
    return found != nullptr && found->id == table.id ? found : nullptr;
  }
  Result<OpenedTable*> Open(const TableState& table);

  // Prepares an evacuation of sparse chunks; the records of all open tables can be moved. Null: another one
  // is under way (evac/4).
  std::unique_ptr<index::Evacuation> NewEvacuation();
  bool evacuating() const { return evacuating_; }
  // For an evacuation by a client that has opened few tables: opens all others, until it ends.
  Task<Done> OpenForEvacuation(fabric::Op& op, index::Evacuation& evacuation);

  // ---- its health
  // Fenced, or a completion was lost: every later trip fails.
  bool broken() const { return broken_; }
  void Break() { broken_ = true; }
  // Whether it reaches some of the nodes, but not all of them.
  bool degraded() const;
  // What PoolState::recoveries() was when it joined.
  uint64_t joined_at() const { return joined_at_; }
  void set_joined_at(uint64_t recoveries) { joined_at_ = recoveries; }

 private:
  Registration(std::unique_ptr<pool::PoolClient> pool, index::FindEngine find_engine);

  // Destroyed in the opposite order.
  std::unique_ptr<fabric::Client> owned_client_;
  const std::unique_ptr<pool::PoolClient> pool_;
  index::Tables tables_;
  std::vector<std::unique_ptr<OpenedTable>> opened_;          // by TableState::slot
  std::vector<std::unique_ptr<OpenedTable>> closed_;          // while an evacuation may use them
  std::vector<std::unique_ptr<index::OpenTable>> evacuated_;  // opened for an evacuation
  bool evacuating_ = false;
  bool broken_ = false;
  uint64_t joined_at_ = 0;
};

}  // namespace farside::store
