// A pool that a command has open, and the command's registration in it.
//
//   Result<PoolSession> pool = PoolSession::Open(url, {.read_only = true}, store::MakeEngine);
//   pool->Run([](Op& op, store::Registration& self) { return self.tables().List(op); });
//   pool->Leave();
//
// A command that only reads a copy of the pool (of a file, say) need not leave.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "fabric/op.h"
#include "fabric/run.h"
#include "farside/result.h"
#include "index/tables.h"
#include "pool/region/open.h"
#include "store/registration.h"

namespace farside::tools {

class PoolSession {
 public:
  // Opens the pool, and joins it.
  static Result<PoolSession> Open(std::string_view url, const pool::OpenOptions& options,
                                  index::FindEngine find_engine);
  // Joins one that is open already, and must stay open.
  static Result<PoolSession> Join(const pool::OpenedPool& pool, index::FindEngine find_engine);

  // Runs `make_task(op, registration)` to its end.
  template <class MakeTask>
  auto Run(MakeTask make_task) {
    fabric::Op op(registration_->client(), fabric::OpKind::kMaintenance);
    return fabric::Run(registration_->client(), make_task(op, *registration_));
  }
  // Walks a table that was opened by this registration, as one operation.
  Status Walk(index::Index& index, pool::Reach& reach);
  Status Leave();

  store::Registration& registration() { return *registration_; }
  const pool::OpenedPool& pool() const { return *pool_; }  // of one that was opened

 private:
  PoolSession() = default;

  // Destroyed in the opposite order.
  std::unique_ptr<pool::OpenedPool> pool_;
  std::unique_ptr<store::Registration> registration_;
};

}  // namespace farside::tools
