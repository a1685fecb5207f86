// What is behind a farside::Pool: the fabric, a session of the pool's own for its tables, and the keeper.
//
// The keeper is a thread that gives signs of life for sessions that nobody uses at the moment. Without them an idle session
// would be taken for dead after a lease, and until then everybody's freed memory would wait for it (docs/leases.md). It
// also looks for what dead clients have left, with the pool's own session, so that no user's operation has to.
//
// Whoever waits for others to move on (a session that leaves, a table that is dropped, a pool that is full) does not wait
// for the keeper to come round, but moves everybody itself (NudgeSessions).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fabric/fabric.h"
#include "farside/pool.h"
#include "farside/result.h"
#include "index/index.h"
#include "index/tables.h"
#include "pool/client.h"
#include "pool/region/open.h"
#include "store/session_state.h"
#include "store/table_state.h"

namespace farside::store {

struct PoolStateOptions {
  pool::OpenOptions open;
  pool::ClientOptions client;
  bool keeper = true;  // false: tests call Keep themselves
};

class PoolState : public std::enable_shared_from_this<PoolState> {
 public:
  static Result<std::shared_ptr<PoolState>> Open(std::string_view url, const PoolStateOptions& options);
  // Of a pool that was opened already.
  static Result<std::shared_ptr<PoolState>> Serve(std::unique_ptr<pool::OpenedPool> opened,
                                                  const PoolStateOptions& options);
  ~PoolState();
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  // ---- tables; safe from any thread, one at a time
  // Makes the table, or opens the one that is there.
  struct MadeTable {
    std::shared_ptr<const TableState> table;
    bool created = false;
  };
  Result<MadeTable> CreateOrOpen(std::string_view name, std::string_view engine,
                                 const index::OptionMap& options);
  Result<std::shared_ptr<const TableState>> OpenTable(std::string_view name);
  Status DropTable(std::string_view name);
  Result<std::vector<pool::TableInfo>> ListTables();

  Result<std::unique_ptr<SessionState>> NewSession();
  Status Close();

  // ---- for sessions; safe from any thread
  fabric::Fabric& fabric() { return *opened_->fabric; }
  const pool::ClientOptions& client_options() const { return options_.client; }
  bool closing() const { return closing_.load(std::memory_order_relaxed); }
  void Add(SessionState& session);
  void Remove(SessionState& session);
  // A sign of life from each session but this one that nobody uses; those who are in use are asked for one.
  void NudgeSessions(const SessionState* but) { Nudge(but, InUse::kAsked, Turn::kIfFree); }
  // The same, but those in use are left alone: they move on by themselves.
  void NudgeIdleSessions(const SessionState* but) { Nudge(but, InUse::kLeftAlone, Turn::kIfFree); }
  // The same, but not all the time: for who has done so in vain.
  void NudgeIdleSessionsRarely(const SessionState* but) { NudgeAndRest(but, InUse::kLeftAlone); }
  // For who waits until all have moved: lets a moment pass, and moves everyone, but not all the time.
  void WaitForOthers(const SessionState* but);
  void ReturnSlot(uint32_t slot);

  // How often nodes that were out of reach were found back. Whoever joined before that may join anew.
  uint64_t recoveries() const { return recoveries_.load(std::memory_order_relaxed); }
  // Somebody misses a node: the keeper looks whether it is back.
  void AskForRecovery() { recovery_wanted_.store(true, std::memory_order_relaxed); }

  // What the keeper does each time: NudgeSessions, and a look at what the dead have left. True: epochs have moved since the
  // last time.
  bool Keep();

 private:
  enum class InUse : uint8_t { kAsked, kLeftAlone };
  enum class Turn : uint8_t { kIfFree, kAwaited };
  void Nudge(const SessionState* but, InUse in_use, Turn turn);
  void NudgeAndRest(const SessionState* but, InUse in_use);

  PoolState(std::unique_ptr<pool::OpenedPool> opened, const PoolStateOptions& options);

  Status Start();
  void RunKeeper();
  void LookForLostNodes();
  void ProbeLostNodes();
  void StopKeeper();
  static Error Closed();
  // One use of the pool's own session.
  template <class T, class MakeTask>
  Result<T> Administer(MakeTask make_task);
  std::shared_ptr<const TableState> NewTable(pool::TableInfo info, index::OptionMap options);

  const PoolStateOptions options_;
  const std::unique_ptr<pool::OpenedPool> opened_;

  std::mutex sessions_mutex_;
  std::vector<SessionState*> sessions_;  // all that are open, the pool's own too
  std::vector<SessionState*> kept_;      // those that Move is at
  bool own_is_open_ = false;
  std::atomic<std::chrono::nanoseconds> rest_until_{};  // before that, NudgeAndRest moves nobody

  std::mutex own_mutex_;               // one at a time uses the pool's own session
  std::unique_ptr<SessionState> own_;  // null when the pool is closed
  uint64_t epochs_ = 0;                // that it knew at the keeper's last visit, added up

  std::mutex slots_mutex_;
  std::vector<uint32_t> free_slots_;
  uint32_t slots_ = 0;    // given out so far
  uint64_t last_id_ = 0;  // of a table handle

  std::atomic<bool> recovery_wanted_{false};
  std::atomic<uint64_t> recoveries_{0};
  std::atomic<bool> closing_{false};
  std::mutex keeper_mutex_;  // of closing_, for the keeper's sleep
  std::condition_variable keeper_wakes_;
  std::thread keeper_;
  std::atomic<bool> probing_{false};
  std::thread probe_;  // of the keeper
};

}  // namespace farside::store
