#include "fabric/shm/served_client.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/bytes.h"
#include "fabric/shm/socket.h"

namespace farside::fabric::shm {

void Channel::Reply(WireStatus status, std::string_view payload) {
  const shm::Reply reply{.status = status, .payload_bytes = static_cast<uint32_t>(payload.size())};
  busy_ = false;  // before the client can know
  static_cast<void>(Send(socket_.get(), BytesOf(reply), AsBytes(payload), Wait::kNo));
}

ShmServedClient::ShmServedClient(memory::ServedNode& node, ClientSlot& slot, uint32_t slot_number,
                                 ClientId id, pid_t pid, Descriptor process, Terms terms)
    : node_(node),
      at_(slot),
      slot_number_(slot_number),
      id_(id),
      pid_(pid),
      process_(std::move(process)),
      terms_(std::move(terms)) {}

void ShmServedClient::CutOff() {
  at_.gate.Close();
  const std::scoped_lock lock(mutex_);
  cut_off_ = true;
}

// A client that is gone is still only when its lines have been completed. One that reads holds lines outside
// of its gate, for a moment; if its process was stopped in that moment, others could wait for those lines for
// ever.
bool ShmServedClient::IsStill() {
  const std::scoped_lock lock(mutex_);
  if (recovered_) return true;
  if (!calling_ && !at_.gate.OpenTurn().has_value() && !node_.memory().Holds(HolderOf(slot_number_)))
    return true;
  LosePatience();
  return false;
}

void ShmServedClient::LosePatience() {
  const Nanos now = terms_.clock->Now();
  if (!waited_since_.has_value()) waited_since_ = now;
  if (out_of_patience_ || now - *waited_since_ < terms_.patience) return;
  out_of_patience_ = true;
  if (terms_.fence == FencePolicy::kKill && process_.open()) {
    const bool killed = ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0) == 0;
    if (killed && terms_.log != nullptr) {
      terms_.log->Warn(now, "client {} (pid {}) was fenced and did not come out of its trip: killed",
                       Number(id_), pid_);
    }
    if (killed) return;  // else it belongs to another user
  }
  if (terms_.log != nullptr) {
    terms_.log->Warn(
        now,
        "client {} (pid {}) was fenced and does not come out of its trip; others wait for it. If the process "
        "was stopped, let it go on (kill -CONT {}) or end it (kill -KILL {})",
        Number(id_), pid_, pid_, pid_);
  }
}

bool ShmServedClient::BeginCall() {
  const std::scoped_lock lock(mutex_);
  if (cut_off_) return false;
  calling_ = true;
  return true;
}

void ShmServedClient::EndCall() {
  const std::scoped_lock lock(mutex_);
  calling_ = false;
}

void ShmServedClient::Leave() { CutOff(); }

// A connection ends when its client is destroyed, which is never in the middle of a trip, or when its process
// ends. If neither seems to be the case, it is the process that counts.
bool ShmServedClient::TryRecover() {
  const std::scoped_lock lock(mutex_);
  if (calling_) return false;
  const bool inside = at_.gate.OpenTurn().has_value();
  const bool ended = process_.open() && ProcessHasEnded();
  if (inside && process_.open() && !ended) return false;
  const size_t lines = node_.memory().Recover(HolderOf(slot_number_), at_.staging);
  recovered_ = true;
  if (terms_.log == nullptr) return true;
  const Nanos now = terms_.clock->Now();
  if (inside || lines != 0) {
    terms_.log->Warn(
        now,
        "client {} (pid {}) died in the middle of a trip; {} lines that it held are whole and free again",
        Number(id_), pid_, lines);
  } else if (ended) {
    terms_.log->Info(now, "client {} (pid {}) is gone: its process has ended", Number(id_), pid_);
  }
  return true;
}

bool ShmServedClient::ProcessHasEnded() const {
  pollfd ended{.fd = process_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) > 0;
}

}  // namespace farside::fabric::shm
