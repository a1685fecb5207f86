#include "pool/members/reader_guard.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

namespace farside::pool {

using fabric::ClientId;
using fabric::Verb;
using fabric::VerbKind;
using fabric::memory::LineMemory;

namespace {

class ReaderSlot final : public fabric::memory::ReaderGuard {
 public:
  ReaderSlot(LineMemory& memory, const Geometry& geometry, ClientId reader)
      : memory_(memory), geometry_(geometry), reader_(reader) {}

  bool May(const Verb& verb) const override {
    switch (verb.kind) {
      case VerbKind::kRead: return true;
      case VerbKind::kWrite: return MayBeat(verb.at.offset, verb.size);
      case VerbKind::kCas: return MayTake(verb) || MayMoveOn(verb);
      default: return false;
    }
  }

  void Executed(const Verb& verb) override {
    if (verb.kind != VerbKind::kCas || verb.old != verb.expect) return;
    const ClientWord now(verb.desired);
    slot_at_ = verb.at.offset;
    word_ = now.state() == ClientState::kFree ? std::nullopt : std::optional(now);
  }

  // INVARIANT reader/3. Nothing happens if the slot is fenced: then it is another word.
  void Depart() override {
    if (!word_.has_value()) return;
    const fabric::FarAddr at(fabric::NodeId{0}, *slot_at_);
    memory_.Atomic(fabric::Cas(at, word_->word(), word_->Freed().word()).verb);
    word_.reset();
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

  LineMemory& memory_;
  const Geometry geometry_;
  const ClientId reader_;
  std::optional<uint64_t> slot_at_;  // once it has taken one
  std::optional<ClientWord> word_;   // of the slot, until it was given back
};

// A node that was restarted has forgotten its clients, and some of them may live on at other nodes.
bool IsNamed(const LineMemory& memory, const Geometry& geometry, ClientId id) {
  for (uint32_t slot = 0; slot < geometry.client_slots; ++slot) {
    const ClientWord word(memory.Load(geometry.client_slot(slot)));
    if (word.state() != ClientState::kFree && word.fabric_client() == id) return true;
  }
  return false;
}

}  // namespace

fabric::memory::NewReaderGuard GuardReaders(const Geometry& geometry) {
  return [geometry](LineMemory& memory, ClientId id) -> Result<std::unique_ptr<fabric::memory::ReaderGuard>> {
    if (IsNamed(memory, geometry, id)) {
      return Error(ErrorCode::kAlreadyExists,
                   fmt::format("client id {} is registered already; try another", Number(id)));
    }
    return std::unique_ptr<fabric::memory::ReaderGuard>(std::make_unique<ReaderSlot>(memory, geometry, id));
  };
}

}  // namespace farside::pool
