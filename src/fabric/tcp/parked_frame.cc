#include "fabric/tcp/parked_frame.h"

#include "fabric/tcp/execute_memory.h"

namespace farside::fabric::tcp {

ParkedFrame::ParkedFrame(const wire::Frame& frame)
    : frame_(frame), answers_(frame.answer_bytes), next_answer_(answers_.data()) {
  for (size_t i = 0; i < frame_.count; ++i) total_bytes_ += wire::EncodedBytes(frame_.verbs[i]);
}

ParkedFrame::Stop ParkedFrame::Execute(memory::LineMemory& memory) {
  while (!AtEnd()) {
    Verb& verb = frame_.verbs[next_++];
    if (verb.kind == VerbKind::kFence) {
      victim_ = static_cast<ClientId>(verb.desired);
      return Stop::kFence;
    }
    changed_ |= Mutates(verb.kind);
    if (!ExecuteMemory(memory, verb, next_answer_)) return Stop::kStuckLine;
  }
  return Stop::kEnd;
}

}  // namespace farside::fabric::tcp
