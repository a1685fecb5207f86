// Scenarios for the chime table in which a memory node hangs. Each returns what went wrong, or nothing; they
// are played with and without planted bugs.
#pragma once

#include <cstdint>
#include <string>

#include "tests/engines/chime/world.h"

namespace farside::index::chime {

// What becomes of a trip that changes something at a memory node that hangs.
enum class Hang : uint8_t {
  kRefused,      // it was not sent, and the client knows that
  kRequestLost,  // it never takes effect, and the client does not know that
  kAnswerLost,   // it takes effect, and the client does not know that
};

// A client inserts keys while one of two memory nodes hangs, and goes on when the node answers again. Then
// the table is dropped, if `dropped`, and the client leaves. What the inserts took is free afterwards.
std::string InsertsFail(Hang hang, size_t span, bool dropped);

}  // namespace farside::index::chime
