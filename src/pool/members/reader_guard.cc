#include "pool/members/reader_guard.h"

namespace farside::pool {

using fabric::VerbKind;

bool ReaderMay(const fabric::NodeMemory& memory, const Geometry& geometry, fabric::ClientId reader,
               const fabric::Verb& verb) {
  const uint64_t begin = geometry.registry();
  if (verb.at.offset < begin || verb.at.offset >= begin + geometry.client_slots * kLine) return false;
  const auto slot = static_cast<uint32_t>((verb.at.offset - begin) / kLine);
  const uint64_t inside = (verb.at.offset - begin) % kLine;
  const ClientWord found(memory.Load(geometry.client_slot(slot)));
  const bool own = found.fabric_client() == reader && found.state() != ClientState::kFree;

  if (verb.kind == VerbKind::kWrite)
    return own && inside >= kPulseOffset && inside + verb.size <= kPulseOffset + sizeof(Pulse);
  if (verb.kind != VerbKind::kCas || inside != 0) return false;
  // The CAS compares all bits, so what it finds is what it expects, or nothing happens.
  const ClientWord expected(verb.expect);
  const ClientWord desired(verb.desired);
  const bool takes = expected.state() == ClientState::kFree && desired.state() == ClientState::kJoining &&
                     desired.fabric_client() == reader;
  const bool changes_own = own && expected.fabric_client() == reader &&
                           (desired.fabric_client() == reader || desired.state() == ClientState::kFree) &&
                           desired.state() != ClientState::kFenced;
  return takes || changes_own;
}

}  // namespace farside::pool
