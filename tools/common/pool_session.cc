#include "tools/common/pool_session.h"

#include <chrono>

#include "store/engines.h"

namespace farside::tools {
namespace {

// For a pool without other clients: a file is locked, and an embedded pool is a new one. Registered clients
// are dead, so a command that waits until their slots are released looks often. In a pool that a daemon
// serves, they live.
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
  if (pool.calls != nullptr) store::RegisterHandlers(*pool.calls);
  Result<std::unique_ptr<fabric::Client>> client = pool.fabric->Connect();
  if (!client.ok()) return client.error();
  pool::ClientOptions options;
  if (!pool.remote) options.lease.lease = kLeaseAlone;
  PoolSession joined;
  {
    fabric::Op op(**client, fabric::OpKind::kMaintenance);
    Result<std::unique_ptr<store::Registration>> registration =
        fabric::Run(**client, store::Registration::Join(op, **client, std::move(find_engine), options));
    if (!registration.ok()) return registration.error();
    joined.registration_ = std::move(*registration);
  }
  joined.registration_->OwnClient(std::move(*client));
  return joined;
}

Status PoolSession::Walk(index::Index& index, pool::Reach& reach) {
  const pool::PoolClient::Pin pin = registration_->pool().Begin();
  return Run([&](fabric::Op& op, store::Registration&) { return index.Walk(op, reach); });
}

Status PoolSession::Leave() {
  return Run([](fabric::Op& op, store::Registration& self) { return self.Leave(op); });
}

}  // namespace farside::tools
