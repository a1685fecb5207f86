#include "fabric/tcp/link.h"

namespace farside::fabric::tcp {

using Outcome = Transport::Outcome;

void Link::Flush() {
  unsent_verbs_ = 0;
  while (!out_.empty() && open() && !send_failed_) {
    const Transport::Moved moved = transport_.Send(out_.bytes());
    if (moved.outcome == Outcome::kMoved) {
      out_.Consume(moved.bytes);
      // A large frame on a slow network takes its time. What the kernel takes at once says nothing of the
      // node.
      if (blocked_) silent_since_.reset();
    } else {
      blocked_ = moved.outcome == Outcome::kWantWrite;
      // The node may have said why before it went away, so what came is read first.
      send_failed_ = moved.outcome == Outcome::kEnd || moved.outcome == Outcome::kBroken;
      return;
    }
  }
  blocked_ = false;
}

Outcome Link::Receive() {
  size_t total = 0;
  while (total < kReceiveMost) {
    std::byte* const to = in_.Reserve(kReceiveRoom);
    const size_t room = in_.room();
    const Transport::Moved moved = transport_.Receive({to, room});
    if (moved.outcome != Outcome::kMoved) {
      if (total != 0) break;  // the end is met again
      return send_failed_ && moved.outcome == Outcome::kWantRead ? Outcome::kBroken : moved.outcome;
    }
    in_.Commit(moved.bytes);
    total += moved.bytes;
    if (moved.bytes < room && !transport_.secure()) break;
  }
  silent_since_.reset();
  return Outcome::kMoved;
}

void Link::Close() {
  transport_.Close();
  out_.Clear();
  in_.Clear();
}

}  // namespace farside::fabric::tcp
