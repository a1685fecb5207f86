// A session: one client of a pool, its membership and its tables, used by one thread.
#pragma once

#include <memory>

#include "fabric/client.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/tables.h"
#include "pool/client.h"

namespace farside::store {

class Session {
 public:
  // Reads what every node of the fabric says about itself, and joins the pool. The client must outlive the session.
  static Task<std::unique_ptr<Session>> Join(fabric::Op& op, fabric::Client& client,
                                             index::FindEngine find_engine, pool::ClientOptions options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Gives everything back. No operation may be in flight, and nothing be used of the session afterwards.
  Task<Done> Leave(fabric::Op& op) { return pool_->Leave(op); }

  pool::PoolClient& pool() { return *pool_; }
  index::Tables& tables() { return tables_; }

 private:
  Session(std::unique_ptr<pool::PoolClient> pool, index::FindEngine find_engine);

  const std::unique_ptr<pool::PoolClient> pool_;
  index::Tables tables_;
};

}  // namespace farside::store
