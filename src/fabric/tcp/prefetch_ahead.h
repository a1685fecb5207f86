// Asks for what the next frames touch before the first of them is executed, so that they do not wait for
// memory one after the other.
#pragma once

#include <cstddef>
#include <span>

#include "fabric/memory/served_node.h"

namespace farside::fabric::tcp {

// `bytes` begins with the next frame, which may be cut short, and need not be correct. Returns how many verbs
// it has looked at.
size_t PrefetchAhead(std::span<const std::byte> bytes, memory::ServedNode& node);

}  // namespace farside::fabric::tcp
