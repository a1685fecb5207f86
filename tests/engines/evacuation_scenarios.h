// A scenario of evacuation for every engine: says what went wrong, or nothing.
#pragma once

#include <string>

#include "tests/support/table_world.h"

namespace farside::index {

// A reader stops at every step of its search, while the record that it looks for moves, and what the chunk of
// the record had is used for other records.
std::string AReaderStopsWhileItsRecordMoves(const std::string& engine, MakeEngine make_engine);

}  // namespace farside::index
