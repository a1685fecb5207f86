// Executes the verbs of a frame that touch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fabric/memory/line_memory.h"
#include "fabric/tcp/wire.h"
#include "fabric/verb.h"

namespace farside::fabric::tcp {

// Executes a READ, a WRITE or an atomic. Its answer, if it has one, goes to `next_answer`, which moves behind
// it. False: the verb has waited too long for a line (memory::LinePatience).
inline bool ExecuteMemory(memory::LineMemory& memory, Verb& verb, std::byte*& next_answer) {
  if (verb.kind == VerbKind::kRead) {
    const uint64_t padded = wire::Padded(verb.size);
    if (padded != verb.size) std::memset(next_answer + padded - 8, 0, 8);
    const bool read = memory.Read(verb.at.offset, {next_answer, verb.size});
    next_answer += padded;
    return read;
  }
  const bool executed = memory.Execute(verb);
  if (IsAtomic(verb.kind)) next_answer = wire::Store(verb.old, next_answer);
  return executed;
}

}  // namespace farside::fabric::tcp
