#include "store/registration.h"

#include <algorithm>
#include <utility>

#include "pool/region/superblock.h"
#include "store/engines.h"

namespace farside::store {

Registration::Registration(std::unique_ptr<pool::PoolClient> pool, index::FindEngine find_engine)
    : pool_(std::move(pool)), tables_(*pool_, std::move(find_engine), DurableEngineNames) {
  if (pool_->read_only()) return;
  // Dead clients leave blocks behind. Only a walk through all tables can tell them from blocks in use.
  pool_->set_walk([this](fabric::Op& op, pool::Reach& reach) { return tables_.Walk(op, reach); });
}

Task<std::unique_ptr<Registration>> Registration::Join(fabric::Op& op, fabric::Client& client,
                                                       index::FindEngine find_engine,
                                                       pool::ClientOptions options) {
  std::vector<pool::Geometry> geometries;
  for (size_t node = 0; node < client.region_bytes().size(); ++node) {
    pool::Geometry geometry;  // stays empty if the node is out of reach
    if (client.Reaches(static_cast<fabric::NodeId>(node)))
      geometry = co_await pool::ReadGeometry(op, static_cast<fabric::NodeId>(node));
    geometries.push_back(geometry);
  }
  std::unique_ptr<pool::PoolClient> pool =
      co_await pool::PoolClient::Join(op, client, std::move(geometries), options);
  co_return std::unique_ptr<Registration>(new Registration(std::move(pool), std::move(find_engine)));
}

bool Registration::degraded() const {
  const fabric::Client& client = pool_->client();
  const size_t nodes = client.region_bytes().size();
  size_t reached = 0;
  for (size_t node = 0; node < nodes; ++node) reached += client.Reaches(static_cast<fabric::NodeId>(node));
  return reached > 0 && reached < nodes;
}

std::unique_ptr<index::Evacuation> Registration::NewEvacuation() {
  if (evacuating_) return nullptr;
  std::vector<index::OpenTable*> open;
  for (const auto& opened : opened_) {
    if (opened != nullptr) open.push_back(&opened->table);
  }
  evacuating_ = true;
  return std::make_unique<index::Evacuation>(*pool_, tables_, std::move(open), [this] {
    evacuating_ = false;
    closed_.clear();
    evacuated_.clear();
  });
}

// One that was dropped meanwhile, or cannot be opened, is left alone: what chunks hold of it stays there.
Task<Done> Registration::OpenForEvacuation(fabric::Op& op, index::Evacuation& evacuation) {
  const std::vector<pool::TableInfo> all = co_await tables_.List(op);
  for (const pool::TableInfo& info : all) {
    const bool is_open = std::any_of(opened_.begin(), opened_.end(), [&](const auto& opened) {
      return opened != nullptr && opened->table.info.entry == info.entry &&
             opened->table.info.incarnation == info.incarnation;
    });
    if (is_open) continue;
    Result<index::OpenTable> open = co_await tables_.Open(op, info.name).Outcome();
    if (!open.ok()) continue;
    evacuation.AddTable(*evacuated_.emplace_back(std::make_unique<index::OpenTable>(std::move(*open))));
  }
  co_return Done{};
}

Result<OpenedTable*> Registration::Open(const TableState& table) {
  Result<index::OpenTable> open = tables_.OpenKnown(table.info, table.options);
  if (!open.ok()) return open.error();
  auto opened = std::make_unique<OpenedTable>();
  opened->id = table.id;
  opened->table = std::move(*open);
  opened->home = &pool_->member(table.info.entry.node);
  if (table.slot >= opened_.size()) opened_.resize(table.slot + 1);
  if (evacuating_) closed_.push_back(std::move(opened_[table.slot]));
  opened_[table.slot] = std::move(opened);
  return opened_[table.slot].get();
}

}  // namespace farside::store
