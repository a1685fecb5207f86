#include "pool/members/reader_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/memory/line_patience.h"

namespace farside::pool {

using fabric::ClientId;
using fabric::Verb;
using fabric::VerbKind;
using fabric::memory::LineMemory;

namespace {

// What the readers of a node share. Safe from any thread.
//
// INVARIANT reader/4: at most `most` readers have a share, and only with one does a reader take a slot. The
// share lasts until the slot is free, so until then the slot counts.
class ReaderShares {
 public:
  explicit ReaderShares(uint32_t most) : most_(most) {}

  bool Take() {
    const std::scoped_lock lock(mutex_);
    if (taken_ == most_) return false;
    ++taken_;
    return true;
  }
  void GiveBack() {
    const std::scoped_lock lock(mutex_);
    --taken_;
  }

  // The slot of a reader that is gone, whose share is given back with it. If a client that does not go on
  // holds its line, or another client has fenced the reader, slot and share are kept for FreeLeft.
  void Free(LineMemory& memory, uint64_t at, ClientWord word) {
    uint64_t old = 0;
    const Verb freed =
        fabric::Cas(fabric::FarAddr(fabric::NodeId{0}, at), word.word(), word.Freed().word()).verb;
    const bool done = memory.Atomic(freed, old) && (old == word.word() || IsGone(word, ClientWord(old)));
    const std::scoped_lock lock(mutex_);
    if (done) {
      --taken_;
    } else {
      left_.emplace_back(at, word);
    }
  }
  void FreeLeft(LineMemory& memory) {
    std::vector<std::pair<uint64_t, ClientWord>> left;
    {
      const std::scoped_lock lock(mutex_);
      left.swap(left_);
    }
    for (const auto& [at, word] : left) Free(memory, at, word);
  }

 private:
  // Whether the members have released the slot of a fenced reader.
  static bool IsGone(ClientWord reader, ClientWord now) {
    return now.state() == ClientState::kFree || now.generation() != reader.generation();
  }

  const uint32_t most_;
  std::mutex mutex_;  // of what follows
  uint32_t taken_ = 0;
  std::vector<std::pair<uint64_t, ClientWord>> left_;  // at most one for each share
};

class ReaderSlot final : public fabric::memory::ReaderGuard {
 public:
  ReaderSlot(LineMemory& memory, const Geometry& geometry, ClientId reader,
             std::shared_ptr<ReaderShares> shares)
      : memory_(memory), geometry_(geometry), reader_(reader), shares_(std::move(shares)) {}

  bool May(const Verb& verb) override {
    switch (verb.kind) {
      case VerbKind::kRead: return true;
      case VerbKind::kWrite: return MayBeat(verb.at.offset, verb.size);
      case VerbKind::kCas: return MayMoveOn(verb) || (MayTake(verb) && HasShare());
      default: return false;
    }
  }

  void Executed(const Verb& verb) override {
    if (verb.kind != VerbKind::kCas || verb.old != verb.expect) return;
    const ClientWord now(verb.desired);
    slot_at_ = verb.at.offset;
    word_ = now.state() == ClientState::kFree ? std::nullopt : std::optional(now);
    if (!word_.has_value()) GiveShareBack();
  }

  // INVARIANT reader/3. If the slot is fenced, it stays as it is, and the share waits for it (reader/4).
  void Depart() override {
    if (!word_.has_value()) return GiveShareBack();
    has_share_ = false;
    shares_->Free(memory_, *slot_at_, *std::exchange(word_, std::nullopt));
  }

 private:
  bool MayBeat(uint64_t at, uint64_t size) const {
    if (!word_.has_value()) return false;
    const uint64_t begin = *slot_at_ + kPulseOffset;
    const uint64_t end = begin + sizeof(Pulse);
    return at >= begin && at <= end && size <= end - at;
  }
  // INVARIANT reader/2: a slot was never taken before.
  bool MayTake(const Verb& cas) const {
    const uint64_t at = cas.at.offset;
    if (slot_at_.has_value() || at < geometry_.registry()) return false;
    const uint64_t inside = at - geometry_.registry();
    if (inside >= geometry_.client_slots * kLine || inside % kLine != 0) return false;
    const ClientWord free(cas.expect);
    return free.state() == ClientState::kFree && cas.desired == free.JoinedBy(reader_).word();
  }
  bool MayMoveOn(const Verb& cas) const {
    if (!word_.has_value() || cas.at.offset != *slot_at_ || cas.expect != word_->word()) return false;
    const bool joins = word_->state() == ClientState::kJoining;
    return cas.desired == word_->Freed().word() ||
           (joins && cas.desired == word_->With(ClientState::kLive).word());
  }

  // Kept if the CAS fails: the reader tries another slot.
  bool HasShare() {
    has_share_ = has_share_ || shares_->Take();
    return has_share_;
  }
  void GiveShareBack() {
    if (std::exchange(has_share_, false)) shares_->GiveBack();
  }

  LineMemory& memory_;
  const Geometry geometry_;
  const ClientId reader_;
  const std::shared_ptr<ReaderShares> shares_;
  bool has_share_ = false;
  std::optional<uint64_t> slot_at_;  // once it has taken one
  std::optional<ClientWord> word_;   // of the slot, until it was given back
};

// A node that was restarted has forgotten its clients, and some of them may live on at other nodes. What
// cannot be read may name any client.
Status CheckNotNamed(const LineMemory& memory, const Geometry& geometry, ClientId id) {
  for (uint32_t slot = 0; slot < geometry.client_slots; ++slot) {
    ClientWord word;
    if (!memory.Read(geometry.client_slot(slot), std::as_writable_bytes(std::span(&word, 1))))
      return Error(ErrorCode::kUnavailable, std::string(fabric::memory::kStuckLine));
    if (word.state() != ClientState::kFree && word.fabric_client() == id) {
      return Error(ErrorCode::kAlreadyExists,
                   fmt::format("client id {} is registered already; try another", Number(id)));
    }
  }
  return OkStatus();
}

}  // namespace

fabric::memory::NewReaderGuard GuardReaders(const Geometry& geometry) {
  const auto shares = std::make_shared<ReaderShares>(std::max(geometry.client_slots / 2, 1U));
  return [geometry, shares](LineMemory& memory,
                            ClientId id) -> Result<std::unique_ptr<fabric::memory::ReaderGuard>> {
    shares->FreeLeft(memory);
    if (Status fine = CheckNotNamed(memory, geometry, id); !fine.ok()) return fine.error();
    return std::unique_ptr<fabric::memory::ReaderGuard>(
        std::make_unique<ReaderSlot>(memory, geometry, id, shares));
  };
}

}  // namespace farside::pool
