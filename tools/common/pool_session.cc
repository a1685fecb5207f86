#include "tools/common/pool_session.h"

#include <chrono>

namespace farside::tools {
namespace {

// Of a pool that nobody else is in: a file is locked, and an embedded pool is a new one. There is nobody to be patient
// with, and a command that waits for the dead to be buried looks often. In one that others serve, they live.
constexpr Nanos kLeaseAlone = std::chrono::milliseconds(5);

}  // namespace

Result<PoolSession> PoolSession::Open(std::string_view url, const pool::OpenOptions& options,
                                      index::FindEngine find_engine) {
  Result<std::unique_ptr<pool::OpenedPool>> pool = pool::OpenPool(url, options);
  if (!pool.ok()) return pool.error();
  Result<PoolSession> session = Join(**pool, std::move(find_engine));
  if (session.ok()) session->pool_ = std::move(*pool);
  return session;
}

Result<PoolSession> PoolSession::Join(const pool::OpenedPool& pool, index::FindEngine find_engine) {
  PoolSession joined;
  Result<std::unique_ptr<fabric::Client>> client = pool.fabric->Connect();
  if (!client.ok()) return client.error();
  joined.client_ = std::move(*client);
  pool::ClientOptions options;
  if (!pool.remote) options.lease.lease = kLeaseAlone;
  fabric::Op op(*joined.client_, fabric::OpKind::kMaintenance);
  Result<std::unique_ptr<store::Session>> session = fabric::Run(
      *joined.client_, store::Session::Join(op, *joined.client_, std::move(find_engine), options));
  if (!session.ok()) return session.error();
  joined.session_ = std::move(*session);
  return joined;
}

Status PoolSession::Walk(index::Index& index, pool::Reach& reach) {
  const pool::PoolClient::Pin pin = session_->pool().Begin();
  return Run([&](fabric::Op& op, store::Session&) { return index.Walk(op, reach); });
}

Status PoolSession::Leave() {
  return Run([](fabric::Op& op, store::Session& session) { return session.Leave(op); });
}

}  // namespace farside::tools
