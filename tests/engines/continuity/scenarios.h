// Scenarios of the continuity table: readers and handlers that stand still at every moment, power cuts, and
// readers that know less than others. Each returns what went wrong, or nothing; they are played with and
// without planted bugs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "index/continuity/layout.h"
#include "index/index.h"
#include "tests/support/table_world.h"

namespace farside::index::continuity {

// One pair of one slot of each kind, and a group of one slot.
OptionMap OneOfEach(bool with_group);
// The n-th key of the even or of the odd bucket of a table of one pair.
std::string KeyOf(bool odd, int number);
// Where the indicator of the key's pair is, in the current table.
uint64_t IndicatorOf(TableWorld& world, TableMember& member, const std::string& key);

// Starts a change, and stops the handler when it has made so many steps. False: it has ended before.
bool StopHandlerAt(TableWorld& world, TableMember& writer, Task<bool>& change, uint64_t steps,
                   Nanos duration);

// A reader stops between any two of its READs. Meanwhile its key is updated, and another key gets its slot.
std::string ASlotIsUsedAgainUnderAReader();
std::string AGroupSlotIsUsedAgainUnderAReader();
// A handler stands still between any two of its steps while the key is read; then the power is cut. What was
// read is there afterwards.
std::string AReaderLooksWhileAHandlerStandsStill();
// A pair has an odd sequence, and no handler is changing it.
std::string APairWasLeftOdd();
// The power is cut at any step of a handler. Then the key can be read, and changed.
std::string PowerComesBack();
// The power is cut when a table was made, of memory that held other bytes. Then it is empty, and can be used.
std::string PowerIsCutWhenATableWasMade();
// After a power cut the sequences of many pairs are odd; after the sweep that follows, none is.
std::string ASweepSettlesPairs();
// The answer of a change is lost behind its handler. Then its outcome is unknown, and it was made once.
std::string AnAnswerIsLost();
// A bucket of a table, with groups and without, gets more keys than it has slots. Then all of them are there.
std::string ASegmentIsFull();
// A table has grown twice, and a reader has not heard of it.
std::string AReaderHasAnOldRoot();
// The same, and what was retired would be used again if there were no reader.
std::string TheOldTableIsUsedAgain();

}  // namespace farside::index::continuity
