// What a parser makes of the bytes that have arrived so far.
#pragma once

namespace farside::peers {

enum class Parsed {
  kComplete,   // there is a whole token at the front
  kMore,       // what is there may become one
  kMalformed,  // nothing that follows can make it one
};

}  // namespace farside::peers
