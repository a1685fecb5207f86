// What a table occupies: what its walk marks, counted.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "pool/memory/reach.h"
#include "pool/region/layout.h"

namespace farside::tools {

struct TableSize {
  uint64_t bytes = 0;  // of the blocks and extents as they were cut, so what a drop gives back
  uint64_t keys = 0;
};

// Collects what it is told, and tells another Reach.
class Measure final : public pool::Reach {
 public:
  using Progress = std::function<void(uint64_t marked)>;

  explicit Measure(pool::Reach* other = nullptr, Progress progress = {})
      : other_(other), progress_(std::move(progress)) {}

  void Mark(fabric::FarAddr block, uint64_t bytes) override;
  void MarkBlock(fabric::FarAddr block, uint64_t bytes, uint64_t prefix) override;
  void CountRecords(uint64_t records) override;

  // `geometries` are those of the nodes. What no pool of that shape can hold counts nothing.
  TableSize Size(const std::vector<pool::Geometry>& geometries);

 private:
  struct Entry {
    fabric::FarAddr at;
    uint64_t bytes = 0;
    bool is_block = false;
  };

  void Add(const Entry& entry);

  pool::Reach* const other_;
  const Progress progress_;
  std::vector<Entry> entries_;
  uint64_t records_ = 0;  // without blocks of their own
};

}  // namespace farside::tools
