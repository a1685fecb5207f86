// A client as the daemon sees it: its connection, its process and its slot.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/limited_log.h"
#include "fabric/address.h"
#include "fabric/memory/served_node.h"
#include "fabric/shm/layout.h"

namespace farside::fabric::shm {

// What happens to a client that was fenced and does not come out of its trip, because its process was stopped
// in the middle of it. Every client that needs the fence waits for it.
enum class FencePolicy : uint8_t {
  kWait,  // until it goes on or ends; the log names the process
  kKill,  // kill it
};

// One end of a connection. Any thread may reply.
class Channel {
 public:
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  const Descriptor& socket() const { return socket_; }
  int descriptor() const { return socket_.get(); }
  // A client has one request at a time. False: it has one already.
  bool BeginRequest() { return !busy_.exchange(true); }
  // Ends the request. A client that does not read its replies gets none.
  void Reply(WireStatus status, std::string_view payload);

 private:
  const Descriptor socket_;
  std::atomic<bool> busy_ = false;
};

class ShmServedClient final : public memory::ServedClient {
 public:
  struct Terms {
    FencePolicy fence = FencePolicy::kWait;
    Nanos patience{};  // with a client that was fenced, before the policy or the log speaks
    std::shared_ptr<const Clock> clock;
    std::shared_ptr<LimitedLog> log;  // may be null
  };

  // `process` may be not open. The node and the slot must outlive this.
  ShmServedClient(memory::ServedNode& node, ClientSlot& slot, uint32_t slot_number, ClientId id, pid_t pid,
                  Descriptor process, Terms terms);

  ClientId id() const { return id_; }
  pid_t pid() const { return pid_; }
  uint32_t slot() const { return slot_number_; }
  int process() const { return process_.get(); }

  // ---- memory::ServedClient
  void CutOff() override;
  bool IsStill() override;

  // ---- by the thread that answers Calls
  // False: the client is cut off, or has left.
  bool BeginCall();
  void EndCall();

  // ---- by the daemon's control thread
  // The connection has ended, or the client shall be served no more: it begins nothing any more.
  void Leave();
  // After Leave: completes its lines and frees them once nothing of it can take effect any more, which ends
  // its life here. False: not yet.
  bool TryRecover();

 private:
  bool ProcessHasEnded() const;
  // After it was cut off: it stays inside.
  void LosePatience();

  memory::ServedNode& node_;
  ClientSlot& at_;
  const uint32_t slot_number_;
  const ClientId id_;
  const pid_t pid_;
  const Descriptor process_;
  const Terms terms_;

  std::mutex mutex_;  // of what follows
  bool cut_off_ = false;
  bool calling_ = false;
  bool recovered_ = false;
  std::optional<Nanos> waited_since_;
  bool out_of_patience_ = false;
};

}  // namespace farside::fabric::shm
