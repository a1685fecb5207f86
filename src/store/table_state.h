// What all copies of a farside::Table share. It never changes, so any thread may read it.
#pragma once

#include <cstdint>
#include <memory>

#include "index/index.h"
#include "pool/catalog/catalog.h"

namespace farside::store {

class PoolState;

struct TableState {
  TableState(std::shared_ptr<PoolState> of, uint64_t number, uint32_t place, pool::TableInfo table,
             index::OptionMap with);
  ~TableState();
  TableState(const TableState&) = delete;
  TableState& operator=(const TableState&) = delete;

  // As that of the pool.
  bool forked() const;

  const std::shared_ptr<PoolState> pool;
  const uint64_t id;    // of this handle; never given again by its pool
  const uint32_t slot;  // where sessions keep their view of it; given again when the handle is gone
  const pool::TableInfo info;
  const bool ordered;  // its engine keeps keys in order
  // That it was opened with, including options that the catalog does not record.
  const index::OptionMap options;
};

}  // namespace farside::store
