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
    node_.cpu_stores_.push_back({offset, word});
    own_[offset] = word;
  }

 private:
  SimNode& node_;
  std::unordered_map<uint64_t, uint64_t> own_;  // the last store to each word
};

uint64_t SimNode::Word(uint64_t offset) const {
  uint64_t word = 0;
  std::memcpy(&word, memory_.data() + offset, sizeof(word));
  return word;
}

void SimNode::SetWord(uint64_t offset, uint64_t word) {
  std::memcpy(memory_.data() + offset, &word, sizeof(word));
}

void SimNode::StopHandler() {
  calling_ = nullptr;
  cpu_stores_.clear();
  visible_stores_ = 0;
}

void SimNode::Restart(bool keep_memory) {
  assert(open_atomics_.empty() && calling_ == nullptr);
  ++incarnation_;
  if (!keep_memory) std::fill(memory_.begin(), memory_.end(), std::byte{0});
}

void SimNode::Sample(Flight& flight, const Piece& piece) {
  if (piece.bytes == 0) return;
  std::memcpy(flight.buffer.data() + piece.at_buffer, memory_.data() + piece.offset, piece.bytes);
}

void SimNode::Store(const Flight& flight, const Piece& piece) {
  if (piece.bytes == 0) return;
  std::memcpy(memory_.data() + piece.offset, flight.buffer.data() + piece.at_buffer, piece.bytes);
}

void SimNode::Fetch(Flight& flight, FlightVerb& verb) {
  verb.verb.old = Word(verb.verb.at.offset);
  verb.fetched = true;
  open_atomics_.push_back({&flight, &verb});
}

void SimNode::StoreBack(FlightVerb& verb) {
  const uint64_t old = verb.verb.old;
  SetWord(verb.verb.at.offset, Succeeds(verb.verb, old) ? NewWord(verb.verb, old) : old);
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
  if (reply.ok()) {
    flight.reply = std::move(*reply);
  } else {
    flight.error = reply.error();
  }
}

bool SimNode::DrainOne() {
  if (visible_stores_ < cpu_stores_.size()) {
    const CpuStore& store = cpu_stores_[visible_stores_++];
    SetWord(store.offset, store.word);
  }
  if (visible_stores_ < cpu_stores_.size()) return false;
  StopHandler();
  return true;
}

}  // namespace farside::fabric::sim
