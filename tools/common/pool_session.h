// A pool that a command has open, and the command's session in it.
//
//   Result<PoolSession> pool = PoolSession::Open(url, {.read_only = true}, store::MakeEngine);
//   pool->Run([](Op& op, store::Session& session) { return session.tables().List(op); });
//   pool->Leave();
//
// Whoever only looks, and nothing of whom reaches the pool (a copy of a file, say), need not leave.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "fabric/client.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "farside/result.h"
#include "index/tables.h"
#include "pool/region/open.h"
#include "store/session.h"

namespace farside::tools {

class PoolSession {
 public:
  // Opens the pool, and joins it.
  static Result<PoolSession> Open(std::string_view url, const pool::OpenOptions& options,
                                  index::FindEngine find_engine);
  // Joins one that is open already, and must stay open.
  static Result<PoolSession> Join(const pool::OpenedPool& pool, index::FindEngine find_engine);

  // Runs `task(op, session)` to its end.
  template <class MakeTask>
  auto Run(MakeTask make_task) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    return fabric::Run(*client_, make_task(op, *session_));
  }
  // Walks a table of this session, as one operation.
  Status Walk(index::Index& index, pool::Reach& reach);
  Status Leave();

  store::Session& session() { return *session_; }
  const pool::OpenedPool& pool() const { return *pool_; }  // of one that was opened

 private:
  PoolSession() = default;

  // Ended in the opposite order.
  std::unique_ptr<pool::OpenedPool> pool_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Session> session_;
};

}  // namespace farside::tools
