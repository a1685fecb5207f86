// Memory on its way into a table: it goes back to the allocator unless it was published, or may have been. A
// sweep begins when no pin is held, and frees what is neither free nor reachable: so it is kept only under a
// pin.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "pool/memory/allocator.h"

namespace farside::index {

class Unpublished {
 public:
  explicit Unpublished(pool::BlockUse use = pool::BlockUse::kStructure) : use_(use) {}
  Unpublished(Unpublished&& other) noexcept { *this = std::move(other); }
  Unpublished& operator=(Unpublished&& other) noexcept {
    Discard();
    use_ = other.use_;
    only_at_hand_ = other.only_at_hand_;
    allocator_ = other.allocator_;
    at_ = other.at_;
    bytes_ = other.bytes_;
    owned_ = std::exchange(other.owned_, false);
    may_be_published_ = other.may_be_published_;
    return *this;
  }
  ~Unpublished() { Discard(); }

  // From now on, FetchRoom fails: what is not at hand is not there (evac/2).
  void OnlyAtHand() { only_at_hand_ = true; }

  // Asks for room. True: it has it, from an earlier attempt, or because some was at hand. False: FetchRoom.
  bool Reserve(pool::Allocator& allocator, uint64_t bytes) {
    if (owned_ && allocator_ == &allocator && bytes_ == bytes) return true;
    Discard();
    allocator_ = &allocator;
    bytes_ = bytes;
    const std::optional<fabric::FarAddr> free = allocator.TryAllocate(bytes, use_);
    if (!free.has_value()) return false;
    at_ = *free;
    owned_ = true;
    return true;
  }
  // As much as was asked for, by trips to the node.
  Task<Done> FetchRoom(fabric::Op& op) {
    if (only_at_hand_) co_return NoRoomAtHand();
    at_ = co_await allocator_->Allocate(op, bytes_, use_);
    owned_ = true;
    co_return Done{};
  }
  // Memory that the table has already: it never goes back.
  void Adopt(fabric::FarAddr at, uint64_t bytes) {
    Discard();
    at_ = at;
    bytes_ = bytes;
    may_be_published_ = true;
  }

  bool owned() const { return owned_; }
  fabric::FarAddr at() const { return at_; }
  uint64_t bytes() const { return bytes_; }

  // A trip that publishes it is about to be posted: whatever becomes of that, it is not ours any more...
  void Publish() {
    owned_ = false;
    may_be_published_ = true;
  }
  // ...unless the trip says that it was not published.
  void Unpublish() {
    owned_ = true;
    may_be_published_ = false;
  }
  bool may_be_published() const { return may_be_published_; }
  // Back to the allocator, if it is ours.
  void Discard() {
    if (owned_) allocator_->FreeUnpublished(at_, bytes_);
    owned_ = false;
  }

 private:
  static Error NoRoomAtHand() {
    return Error(ErrorCode::kOutOfMemory, "no free block for the copy of a record is at hand");
  }

  pool::BlockUse use_ = pool::BlockUse::kStructure;
  bool only_at_hand_ = false;
  pool::Allocator* allocator_ = nullptr;
  fabric::FarAddr at_;
  uint64_t bytes_ = 0;
  bool owned_ = false;
  bool may_be_published_ = false;
};

}  // namespace farside::index
