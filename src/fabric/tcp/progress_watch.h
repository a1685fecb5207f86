// How much a client has sent and received, and whether it has stalled: whether it keeps the node waiting,
// with a request half sent or with answers that it does not take, and makes no progress.
//
// Progress is to rest, with nothing half sent and nothing unsent, or to move more than one part in kSlowest
// of the memory that the client has of the buffer budget. So a client that sends a byte now and then cannot
// hold much memory for long.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "fabric/tcp/buffer_budget.h"

namespace farside::fabric::tcp {

// Used by the thread of the connection alone.
class ProgressWatch {
 public:
  // `patience`: how long a client may go without progress.
  explicit ProgressWatch(Nanos patience) : patience_(patience) {}

  void Received(size_t bytes) { received_ += bytes; }
  void Sent(size_t bytes) { sent_ += bytes; }
  void Rest() { rested_ = true; }
  // Bytes, since the client came in.
  uint64_t received() const { return received_; }
  uint64_t moved() const { return received_ + sent_; }

  // To be asked now and then while the client keeps the node waiting.
  bool HasStalled(Nanos now, const BufferShare& buffers) {
    if (!rested_ && moved() - moved_before_ <= buffers.counted() / kSlowest)
      return now - progress_at_ >= (buffers.HoldsWhatIsScarce() ? patience_ / kHurriedPart : patience_);
    rested_ = false;
    moved_before_ = moved();
    progress_at_ = now;
    return false;
  }

 private:
  static constexpr uint64_t kSlowest = 16;
  static constexpr int kHurriedPart = 10;  // of the patience with a client that has memory which others need

  const Nanos patience_;
  uint64_t received_ = 0;
  uint64_t sent_ = 0;
  bool rested_ = true;         // since the last progress was noted
  uint64_t moved_before_ = 0;  // received and sent, when the last progress was noted
  Nanos progress_at_{0};       // when that was
};

}  // namespace farside::fabric::tcp
