// Scenarios of the nessie table that are not scenes of several clients at once. Each returns what went wrong,
// or nothing; they are played with and without planted bugs.
#pragma once

#include <cstdint>
#include <string>

namespace farside::index::nessie {

// A cursor has read the lower slots. Then a key moves from a slot that it has not read to one behind it.
std::string CursorMeetsAMigration();
// The same, and the cursor's client loses its connection, at every verb. Another one goes on with the cursor.
std::string CursorMeetsAnError();
// A client moves keys to higher slots inside the READ by which a cursor of its own reads both of their slots.
std::string KeysMoveInsideAReadOfACursor(uint64_t seeds);
// Clients delete and put keys of four slots until their memory is used again; nothing is retired twice.
std::string MemoryComesBack();
// Two clients remove the same claim, of which one stops at every step; only one retires the copy.
std::string TwoRemoveAClaim();
// A writer finds that its entry is gone when it is about to commit: it must not answer that the change is
// done. (Only a client that was taken for dead meets this, and as a rule its trip fails before.)
std::string EntryIsGoneAtItsCommit();

}  // namespace farside::index::nessie
