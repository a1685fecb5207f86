// A table for tests of how tables grow (index/kit/growing_partition.h). It has a root and segments, and no
// records: a change only counts as one record more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/kit/growing_partition.h"
#include "tests/support/table_world.h"

namespace farside::index::growing {

struct Options {
  uint32_t most_version = 4;
  double max_load = 0.95;
  uint64_t burst = 0;  // one version by a resize
  Nanos backoff = std::chrono::microseconds(2);
  bool share_searches = false;
};

class Part final : public GrowingPartition {
 public:
  Part(const Options& options, pool::PoolClient& pool, fabric::FarAddr root)
      : GrowingPartition({.engine = "growing",
                          .most_version = options.most_version,
                          .max_load = options.max_load,
                          .head_start = 0.05,
                          .alpha = 0.1,
                          .burst = options.burst},
                         pool, root) {}

  static uint64_t BytesOf(size_t segment) { return uint64_t{1024} << segment; }
  int times_grown() const { return times_grown_; }

 private:
  uint64_t Capacity(uint32_t version) const override { return uint64_t{8} << version; }
  uint64_t SegmentBytes(size_t segment) const override { return BytesOf(segment); }
  void HasGrown() override { ++times_grown_; }

  int times_grown_ = 0;
};

Result<std::shared_ptr<Engine>> MakeGrowingEngine(const OptionMap& options);

// A client with the table open.
class Member : public TableMember {
 public:
  explicit Member(TableWorld& world, OptionMap options = {})
      : TableMember(world, "growing", MakeGrowingEngine, std::move(options)), world_(world) {}

  Part& part();
  // As it stands in memory.
  StateWord state() const { return StateWord(LoadU64(world_.memory().data() + roots()[0].offset)); }

  // An operation: it catches up.
  Task<Done> Look();
  // An operation that has found no place for its key, and the next one.
  Task<Done> RequestAndLook();
  // Publishes and reads the root's line, and nothing else: what waits for a grace goes on waiting.
  Task<Done> Sync();
  // Memory that is not reachable.
  Task<fabric::FarAddr> Allocate(uint64_t bytes);

 private:
  TableWorld& world_;
};

}  // namespace farside::index::growing
