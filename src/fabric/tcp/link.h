// One connection of a client to one node: what waits to be sent, what was received, and which frames wait for
// their replies, which come in the order of the frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "fabric/tcp/byte_queue.h"
#include "fabric/tcp/ring.h"
#include "fabric/tcp/transport.h"
#include "farside/result.h"

namespace farside::fabric::tcp {

class Link {
 public:
  // A frame that was queued and is not answered yet.
  struct Waiting {
    uint32_t unanswered = 0;  // of the client
    uint64_t end = 0;         // where it ends in all that was ever queued
  };

  explicit Link(Transport transport) : transport_(std::move(transport)) {}
  // One that never was: why the node could not be reached.
  explicit Link(Error why) : down_(std::move(why)) {}

  Transport& transport() { return transport_; }
  bool open() const { return transport_.valid(); }
  // Why nothing goes to the node any more. Once it is there it stays.
  const std::optional<Error>& down() const { return down_; }
  void SetDown(const Error& why) {
    if (!down_.has_value()) down_ = why;
  }
  Ring<Waiting>& waiting() { return waiting_; }
  const ByteQueue& in() const { return in_; }
  void ConsumeIn(size_t bytes) { in_.Consume(bytes); }

  // Room for a frame, to be filled at once.
  std::byte* QueueFrame(size_t bytes, size_t verbs, uint32_t unanswered) {
    if (waiting_.empty()) silent_since_.reset();
    std::byte* const at = out_.Reserve(bytes);
    out_.Commit(bytes);
    queued_ += bytes;
    waiting_.Push({unanswered, queued_});
    unsent_verbs_ += verbs;
    return at;
  }
  // Enough that the node may begin with them while more are made.
  bool IsWorthSending() const { return unsent_verbs_ >= kVerbsPerSend; }
  bool has_unsent() const { return !out_.empty(); }
  // Whether all of a frame has left, so that the node may have executed it.
  bool HasLeft(const Waiting& frame) const { return frame.end <= queued_ - out_.size(); }

  // Hands as much as possible to the kernel. A failure is found by the next Receive.
  void Flush();
  void DropUnsent() { out_.Clear(); }

  // kMoved: there are new bytes in in(). A failure to send is told here too, when all was read that came
  // before.
  Transport::Outcome Receive();

  // Since when the node owes an answer and nothing moves, as of the last look.
  std::optional<Nanos>& silent_since() { return silent_since_; }

  void Close();

 private:
  static constexpr size_t kVerbsPerSend = 32;
  static constexpr size_t kReceiveRoom = size_t{64} << 10;
  // As much as is taken in at once; the rest waits in the kernel while answers are given out.
  static constexpr size_t kReceiveMost = size_t{1} << 20;

  Transport transport_;
  std::optional<Error> down_;
  ByteQueue out_;
  ByteQueue in_;
  uint64_t queued_ = 0;
  size_t unsent_verbs_ = 0;  // since the last attempt to send
  bool send_failed_ = false;
  bool blocked_ =
      false;  // the kernel did not take all of it, because the node has not taken what went before
  Ring<Waiting> waiting_;
  std::optional<Nanos> silent_since_;
};

}  // namespace farside::fabric::tcp
