// Scenarios of the nessie table that are not scenes of several clients at once. Each returns what went wrong,
// or nothing; they are played with and without planted bugs.
#pragma once

#include <string>

namespace farside::index::nessie {

// A cursor has read the lower slots. Then a key moves from a slot that it has not read to one behind it.
std::string CursorMeetsAMigration();
// Clients delete and put keys of four slots until their memory is used again; nothing is retired by the
// client that lost a CAS, and nothing twice.
std::string MemoryComesBack();

}  // namespace farside::index::nessie
