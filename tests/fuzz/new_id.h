// Ids of clients in the inputs of fuzzers. A node does not admit an id twice, so that each Hello needs
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/fuzz/target.h"

namespace farside::fuzz {

// Gives another id to the Hello with which `bytes` begin, unless it has none.
template <class Hello>
void GiveNewId(Bytes& bytes) {
  static uint32_t last_id = 1'000'000;  // beyond those of other clients of the node
  constexpr size_t kAt = offsetof(Hello, client);
  uint32_t id = 0;
  std::memcpy(&id, bytes.data() + kAt, sizeof id);
  if (id != 0) std::memcpy(bytes.data() + kAt, &++last_id, sizeof last_id);
}

}  // namespace farside::fuzz
