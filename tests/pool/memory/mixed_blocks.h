// Blocks of mixed sizes from several clients of one pool, which free each other's: for the bench of the
// allocator, and for a smaller test of the same.
//
// The clients take turns at a shared set of live blocks. A turn is an operation: it replaces a block of the
// set, whichever client owned it, by one of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "fabric/run.h"
#include "pool/client.h"
#include "pool/fsck/fsck.h"
#include "pool/region/open.h"

namespace farside::pool {

struct MixedBlocksOptions {
  size_t sessions = 8;
  size_t live_blocks = 100'000;
  uint64_t smallest = 16;
  uint64_t largest = 64 * 1024;        // every doubling between them is as likely as any other
  uint64_t turns_per_extent = 10'000;  // every so often, a block of some chunks instead; 0: never
  uint64_t chunk_bytes = 1024 * 1024;
  uint64_t operations_per_sync = 1000;  // of each session
  const char* url = "embedded:?size=4GiB";
};

class MixedBlocks {
 public:
  explicit MixedBlocks(const MixedBlocksOptions& options)
      : options_(options), pool_(Open(options)), observer_(std::move(*pool_->fabric->Connect())) {
    before_ = Check().bytes;
    ClientOptions client;
    client.operations_per_sync = options.operations_per_sync;
    for (size_t i = 0; i < options.sessions; ++i)
      sessions_.push_back(std::make_unique<Session>(*pool_, client));
    live_.resize(options.live_blocks);
  }

  // One block is replaced by another.
  void Turn() {
    Session& session = *sessions_[turns_++ % sessions_.size()];
    Block& block = live_[random_.Below(live_.size())];
    {
      const PoolClient::Pin pin = session.pool->Begin();
      if (block.bytes != 0) session.Retire(block.at, block.bytes, pin);
      live_bytes_ -= block.bytes;
      block = Block{};
      const uint64_t bytes = DrawSize();
      const std::optional<fabric::FarAddr> fresh = session.Allocate(bytes);
      if (fresh.has_value()) block = Block{*fresh, bytes};
      live_bytes_ += block.bytes;
    }
    if (session.pool->MaintenanceDue()) session.Maintain();
  }

  void FreeAllAndLeave() {
    Session& last = *sessions_.back();
    {
      const PoolClient::Pin pin = last.pool->Begin();
      for (const Block& block : live_) {
        if (block.bytes != 0) last.Retire(block.at, block.bytes, pin);
      }
    }
    live_.clear();
    live_bytes_ = 0;
    for (int i = 0; i < 4; ++i) {
      for (auto& session : sessions_) session->Maintain();
    }
    for (auto& session : sessions_) session->Leave();
  }

  // What every byte of the pool is.
  FsckReport Check() {
    fabric::Op op(*observer_, fabric::OpKind::kMaintenance);
    const Reached nothing;
    return *fabric::Run(*observer_, Fsck(op, kNode, pool_->geometries[0], nothing, FsckOptions{}));
  }
  const FsckBytes& before() const { return before_; }

  uint64_t turns() const { return turns_; }
  uint64_t live_bytes() const { return live_bytes_; }  // as asked for
  // Whole chunks that are not free.
  uint64_t ClaimedBytes() {
    const FsckCounts counts = Check().counts;
    return (counts.chunks - counts.chunks_free) * pool_->geometries[0].chunk_bytes;
  }
  // Of the allocators, all told: claims, giving back, harvests, releases.
  uint64_t Trips() const {
    return Sum([](const Session& session) { return session.pool->allocator(kNode).stats().trips; });
  }
  // Those of them that an operation has waited for, in order to get a block.
  uint64_t TripsOfAllocating() const {
    return Sum([](const Session& session) { return session.trips_of_allocating; });
  }
  uint64_t Nonsense() const {
    return Sum([](const Session& session) { return session.pool->allocator(kNode).stats().nonsense; });
  }
  // The first error of any session; empty if there was none.
  std::string Problem() const {
    for (const auto& session : sessions_) {
      if (!session->problem.empty()) return session->problem;
    }
    return "";
  }

 private:
  static constexpr fabric::NodeId kNode{0};

  struct Block {
    fabric::FarAddr at;
    uint64_t bytes = 0;
  };

  struct Session {
    Session(OpenedPool& opened, const ClientOptions& options) : client(std::move(*opened.fabric->Connect())) {
      fabric::Op op(*client, fabric::OpKind::kMaintenance);
      pool = std::move(*fabric::Run(*client, PoolClient::Join(op, *client, opened.geometries, options)));
    }

    // Nothing, if there was an error.
    std::optional<fabric::FarAddr> Allocate(uint64_t bytes) {
      if (const auto block = pool->allocator(kNode).TryAllocate(bytes)) return block;
      fabric::Op op(*client, fabric::OpKind::kInsert);
      const Result<fabric::FarAddr> block = fabric::Run(*client, pool->allocator(kNode).Allocate(op, bytes));
      trips_of_allocating += op.tally().maintenance_trips + op.tally().end_to_end_trips;
      if (block.ok()) return *block;
      Note(block.error());
      return std::nullopt;
    }
    void Retire(fabric::FarAddr block, uint64_t bytes, const PoolClient::Pin& pin) {
      pool->allocator(kNode).Retire(block, bytes, pin.epoch(kNode));
    }
    void Maintain() {
      fabric::Op op(*client, fabric::OpKind::kMaintenance);
      const Result<Done> maintained = fabric::Run(*client, pool->Maintain(op));
      if (!maintained.ok()) Note(maintained.error());
    }
    void Leave() {
      fabric::Op op(*client, fabric::OpKind::kMaintenance);
      const Result<Done> left = fabric::Run(*client, pool->Leave(op));
      if (!left.ok()) Note(left.error());
    }
    void Note(const Error& error) {
      if (problem.empty()) problem = error.ToString();
    }

    std::unique_ptr<fabric::Client> client;
    std::unique_ptr<PoolClient> pool;
    uint64_t trips_of_allocating = 0;
    std::string problem;
  };

  static std::unique_ptr<OpenedPool> Open(const MixedBlocksOptions& options) {
    OpenOptions open;
    open.format.chunk_bytes = options.chunk_bytes;
    return std::move(*OpenPool(options.url, open));
  }

  uint64_t DrawSize() {
    if (options_.turns_per_extent != 0 && random_.Chance(1, options_.turns_per_extent)) {
      return options_.chunk_bytes * random_.Between(1, 4) + 1;
    }
    return std::max(options_.smallest, random_.LogUniform(options_.largest));
  }

  template <class Of>
  uint64_t Sum(Of of) const {
    uint64_t sum = 0;
    for (const auto& session : sessions_) sum += of(*session);
    return sum;
  }

  const MixedBlocksOptions options_;
  const std::unique_ptr<OpenedPool> pool_;
  const std::unique_ptr<fabric::Client> observer_;
  std::vector<std::unique_ptr<Session>> sessions_;
  FsckBytes before_;
  std::vector<Block> live_;
  uint64_t live_bytes_ = 0;
  uint64_t turns_ = 0;
  Random random_{1};
};

}  // namespace farside::pool
