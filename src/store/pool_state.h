// What is behind a farside::Pool: the fabric, a session of the pool's own for work on its tables, and the
// keeper.
//
// The keeper is a thread that looks after idle sessions. It takes them offline, so that no client waits for
// them, and beats for them; without that, other clients would fence an idle session after a lease
// (docs/leases.md). It also repairs what dead clients have left, with the pool's own session, so that no
// operation of a user has to.
//
// A session that waits for all others to sync (because it leaves, drops a table, or found the pool full) does
// not wait for the keeper's next round: it nudges the sessions of this process itself (NudgeSessions).
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

#include "base/fork_guard.h"
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
  pool::OpenOptions open;  // what it points to is used by Open alone
  pool::ClientOptions client;
  bool keeper = true;  // false: there is no thread, and tests call Keep
};

class PoolState : public std::enable_shared_from_this<PoolState> {
 public:
  static Result<std::shared_ptr<PoolState>> Open(std::string_view url, const PoolStateOptions& options);
  // The same for far memory that is open already.
  static Result<std::shared_ptr<PoolState>> Serve(std::unique_ptr<pool::OpenedPool> opened,
                                                  const PoolStateOptions& options);
  ~PoolState();
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  // ---- tables; for any thread; one call at a time runs, the others wait
  // Makes the table, or opens the one that exists.
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
  // For a pool whose memory is not used again: its sessions end without leaving it. No call may be under way.
  void Abandon();

  // Whether this process is a child of the one that opened the pool. Then all calls above are refused, before
  // they take a lock, which a thread of the parent may have had.
  bool forked() const { return guard_.forked(); }

  // ---- for sessions; for any thread
  fabric::Fabric& fabric() { return *opened_->fabric; }
  const pool::ClientOptions& client_options() const { return client_options_; }
  bool closing() const { return closing_.load(std::memory_order_relaxed); }
  void Add(SessionState& session);
  void Remove(SessionState& session);
  // Makes all sessions sync but `self`: idle ones at once, those in use with their next operation. Does
  // nothing while another thread is at it.
  void NudgeSessions(const SessionState* self) {
    Nudge(self, InUse::kRequest, Busy::kReturn, SessionState::Visit::kNudge);
  }
  // The same for idle sessions only; those in use sync by themselves.
  void NudgeIdleSessions(const SessionState* self) {
    Nudge(self, InUse::kSkip, Busy::kReturn, SessionState::Visit::kNudge);
  }
  // The same, but not all the time: for a session that has nudged in vain.
  void NudgeIdleSessionsRarely(const SessionState* self) { NudgeAndRest(self, InUse::kSkip); }
  // For a session that waits until all others have synced: lets a moment pass, and nudges, but not all the
  // time.
  void WaitForOthers(const SessionState* self);
  void ReturnSlot(uint32_t slot);

  // How often nodes that were out of reach were found back. A session that registered before that may
  // register anew.
  uint64_t recoveries() const { return recoveries_.load(std::memory_order_relaxed); }
  // A session misses a node: the keeper probes whether it is back.
  void RequestProbe() { probe_requested_.store(true, std::memory_order_relaxed); }

  // A session has come online, so the keeper looks at it now and then.
  void NoteOnline();
  // A look of the keeper: sessions without an operation since the last look go offline. True: some session is
  // online.
  bool RestIdleSessions();
  // One round of the keeper: beats for all idle sessions, and repairs what dead clients have left. True:
  // epochs have moved since the last round.
  bool Keep();

 private:
  enum class InUse : uint8_t { kRequest, kSkip };  // what to do with sessions in use
  enum class Busy : uint8_t { kReturn, kWait };    // what to do while another thread nudges
  void Nudge(const SessionState* self, InUse in_use, Busy busy, SessionState::Visit visit);
  void ContinueSyncs();
  void NudgeAndRest(const SessionState* self, InUse in_use);

  PoolState(std::unique_ptr<pool::OpenedPool> opened, const pool::ClientOptions& client_options);

  Status Start(bool keeper);
  void RunKeeper();
  void StartRequestedProbe();
  void ProbeLostNodes();
  void StopKeeper();
  static Error Closed();
  Status CheckProcess() const;
  // Work with the pool's own session.
  template <class T, class MakeTask>
  Result<T> Administer(MakeTask make_task);
  // Creates the table; if there is no room, until that is certain.
  template <class Create>
  auto WithRoom(Create create) -> decltype(create());
  std::shared_ptr<const TableState> NewTable(pool::TableInfo info, index::OptionMap options);

  const ForkGuard guard_;
  const pool::ClientOptions client_options_;
  const std::unique_ptr<pool::OpenedPool> opened_;

  std::mutex sessions_mutex_;
  std::vector<SessionState*> sessions_;  // all that are open, the pool's own included
  std::vector<SessionState*> syncing_;   // for which Nudge has begun a sync
  bool own_is_open_ = false;
  std::atomic<std::chrono::nanoseconds> rest_until_{};  // before that, NudgeAndRest does nothing

  std::mutex own_mutex_;               // held while the pool's own session is used
  std::unique_ptr<SessionState> own_;  // null when the pool is closed
  uint64_t epochs_ = 0;                // that it knew at the keeper's last round, added up

  std::mutex slots_mutex_;
  std::vector<uint32_t> free_slots_;
  uint32_t slots_ = 0;    // given out so far
  uint64_t last_id_ = 0;  // of a table handle

  std::atomic<bool> probe_requested_{false};
  std::atomic<uint64_t> recoveries_{0};
  std::atomic<bool> closing_{false};
  std::atomic<bool> online_{true};  // some session is, as far as the keeper knows
  std::mutex keeper_mutex_;         // of closing_ and online_, for the keeper's sleep
  std::condition_variable keeper_wakes_;
  std::thread keeper_;
  std::atomic<bool> probing_{false};
  std::thread probe_;  // started by the keeper
};

}  // namespace farside::store
