#include "store/registration.h"

#include <utility>

#include "store/engines.h"

namespace farside::store {

Result<std::unique_ptr<Registration>> Registration::Connect(fabric::Fabric& fabric) {
  Result<std::unique_ptr<fabric::Client>> client = fabric.Connect();
  if (!client.ok()) return client.error();
  std::unique_ptr<Registration> registration(new Registration());
  registration->client_ = std::move(*client);
  return registration;
}

bool Registration::degraded() const {
  const size_t nodes = client_->region_bytes().size();
  size_t reached = 0;
  for (size_t node = 0; node < nodes; ++node) reached += client_->Reaches(static_cast<fabric::NodeId>(node));
  return reached > 0 && reached < nodes;
}

Task<Done> Registration::JoinPool(fabric::Op& op, pool::ClientOptions options) {
  session_ = co_await Session::Join(op, *client_, MakeEngine, options);
  co_return Done{};
}

Result<OpenedTable*> Registration::Open(const TableState& table) {
  Result<index::OpenTable> open = session_->tables().OpenKnown(table.info, table.options);
  if (!open.ok()) return open.error();
  auto opened = std::make_unique<OpenedTable>();
  opened->id = table.id;
  opened->table = std::move(*open);
  opened->home = &pool().member(table.info.entry.node);
  if (table.slot >= tables_.size()) tables_.resize(table.slot + 1);
  tables_[table.slot] = std::move(opened);
  return tables_[table.slot].get();
}

}  // namespace farside::store
