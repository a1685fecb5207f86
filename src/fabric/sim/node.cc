#include "fabric/sim/node.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <unordered_map>

namespace farside::fabric::sim {

class SimNode::HandlerView final : public NodeMemory {
 public:
  explicit HandlerView(SimNode& node) : node_(node) {}
  uint64_t bytes() const override { return node_.memory_.size(); }
  uint64_t Load(uint64_t offset) const override {
    assert(offset % 8 == 0 && offset + 8 <= bytes());
    const auto own = own_.find(offset);
    return own != own_.end() ? own->second : node_.Word(offset);
  }
  void Store(uint64_t offset, uint64_t word) override {
    assert(offset % 8 == 0 && offset + 8 <= bytes());
    node_.cpu_steps_.push_back({CpuStep::Kind::kStore, offset, word});
    own_[offset] = word;
  }

 private:
  void FlushLines(uint64_t offset, uint64_t size) override {
    if (node_.durable()) node_.cpu_steps_.push_back({CpuStep::Kind::kFlush, offset, size});
  }
  void DrainLines() override {
    if (node_.durable()) node_.cpu_steps_.push_back({CpuStep::Kind::kDrain, 0, 0});
  }

  SimNode& node_;
  std::unordered_map<uint64_t, uint64_t> own_;  // the last store to each word
};

uint64_t SimNode::Word(uint64_t offset) const {
  uint64_t word = 0;
  std::memcpy(&word, memory_.data() + offset, sizeof(word));
  return word;
}

void SimNode::SetWord(uint64_t offset, uint64_t word) {
  if (durable()) durable_words_->Changed(offset, Word(offset), word);
  std::memcpy(memory_.data() + offset, &word, sizeof(word));
}

void SimNode::StopHandler() {
  calling_ = nullptr;
  cpu_steps_.clear();
  next_step_ = 0;
}

void SimNode::Restart(bool keep_memory) {
  assert(open_atomics_.empty() && calling_ == nullptr);
  ++incarnation_;
  if (!keep_memory) std::fill(memory_.begin(), memory_.end(), std::byte{0});
}

size_t SimNode::RestartAfterPowerCut(Random& random) {
  assert(durable());
  Restart(/*keep_memory=*/true);
  return durable_words_->CutPower(memory_, random);
}

void SimNode::Sample(Flight& flight, const Piece& piece) {
  if (piece.bytes == 0) return;
  std::memcpy(flight.buffer.data() + piece.at_buffer, memory_.data() + piece.offset, piece.bytes);
}

void SimNode::Store(const Flight& flight, const Piece& piece) {
  if (piece.bytes == 0) return;
  const std::byte* const from = flight.buffer.data() + piece.at_buffer;
  if (!durable()) {
    std::memcpy(memory_.data() + piece.offset, from, piece.bytes);
    return;
  }
  const uint64_t end = piece.offset + piece.bytes;
  for (uint64_t at = piece.offset; at < end;) {
    const uint64_t offset = at / 8 * 8;
    const uint64_t next = std::min(offset + 8, end);
    uint64_t word = Word(offset);
    std::memcpy(reinterpret_cast<std::byte*>(&word) + (at - offset), from + (at - piece.offset), next - at);
    SetWord(offset, word);
    at = next;
  }
}

void SimNode::Fetch(Flight& flight, FlightVerb& verb) {
  verb.verb.old = Word(verb.verb.at.offset);
  verb.fetched = true;
  open_atomics_.push_back({&flight, &verb});
}

void SimNode::StoreBack(FlightVerb& verb, bool even_if_failed) {
  const uint64_t old = verb.verb.old;
  const bool succeeds = Succeeds(verb.verb, old);
  if (succeeds || even_if_failed) SetWord(verb.verb.at.offset, succeeds ? NewWord(verb.verb, old) : old);
  Forget(verb);
}

void SimNode::Forget(FlightVerb& verb) {
  verb.fetched = false;
  std::erase_if(open_atomics_, [&](const OpenAtomic& open) { return open.verb == &verb; });
}

SimNode::OpenAtomic SimNode::AtomicOn(uint64_t offset) const {
  for (const OpenAtomic& open : open_atomics_) {
    if (open.verb->verb.at.offset == offset) return open;
  }
  return {};
}

void SimNode::RunHandler(const CallTable& calls, Flight& flight, FlightVerb& verb) {
  assert(calling_ == nullptr);
  calling_ = &flight;
  verb.fetched = true;
  HandlerView view(*this);
  Result<std::string> reply = calls.Handle(verb.verb.call, view, flight.owner, flight.request);
  flushed_ += view.flushed();
  if (reply.ok()) {
    flight.reply = std::move(*reply);
  } else {
    flight.error = reply.error();
  }
}

bool SimNode::StepHandler() {
  if (HasStep()) {
    const CpuStep& step = cpu_steps_[next_step_++];
    switch (step.kind) {
      case CpuStep::Kind::kStore: SetWord(step.offset, step.word_or_size); break;
      case CpuStep::Kind::kFlush: durable_words_->Flush(step.offset, step.word_or_size); break;
      case CpuStep::Kind::kDrain: durable_words_->Drain(); break;
    }
  }
  if (HasStep()) return false;
  StopHandler();
  return true;
}

}  // namespace farside::fabric::sim
