#include "store/session.h"

#include <utility>
#include <vector>

#include "pool/region/superblock.h"

namespace farside::store {

Session::Session(std::unique_ptr<pool::PoolClient> pool, index::FindEngine find_engine)
    : pool_(std::move(pool)), tables_(*pool_, std::move(find_engine)) {
  if (pool_->read_only()) return;
  // The dead leave blocks behind that only a walk through all tables can tell from those in use.
  pool_->set_walk([this](fabric::Op& op, pool::Reach& reach) { return tables_.Walk(op, reach); });
}

Task<std::unique_ptr<Session>> Session::Join(fabric::Op& op, fabric::Client& client,
                                             index::FindEngine find_engine, pool::ClientOptions options) {
  std::vector<pool::Geometry> geometries;
  for (size_t node = 0; node < client.region_bytes().size(); ++node) {
    pool::Geometry geometry;  // stays empty if the node is out of reach
    if (client.Reaches(static_cast<fabric::NodeId>(node)))
      geometry = co_await pool::ReadGeometry(op, static_cast<fabric::NodeId>(node));
    geometries.push_back(geometry);
  }
  std::unique_ptr<pool::PoolClient> pool =
      co_await pool::PoolClient::Join(op, client, std::move(geometries), options);
  co_return std::unique_ptr<Session>(new Session(std::move(pool), std::move(find_engine)));
}

}  // namespace farside::store
