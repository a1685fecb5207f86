// Tiny nessie tables of which all interleavings are explored; with and without planted bugs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/exhaustive/actor.h"
#include "check/exhaustive/explorer.h"
#include "check/exhaustive/index_program.h"
#include "index/nessie/nessie.h"

namespace farside::index::nessie {

// What a client does before its first operation.
struct Prelude {
  // Reads the directory: what happens afterwards it does not know. And gets memory from which its operations
  // take their items: how clients share the memory of a node is explored elsewhere.
  bool learns = false;
  bool activates = false;  // makes announced growth count. Clients that came before know of the announcement
};

// What becomes of an attempt that met another client's change, and has to be repeated.
//
// With kNever the operation ends there, and promises that it had no effect. It leaves nothing behind, so an
// operation with n attempts is like n operations. That makes scenarios with three clients that change a key
// small enough to be explored to the end.
enum class Retries { kForAShortTime, kNever };

// An engine with four slots and these options, and a scenario on a table of it. Must not move: programs refer
// to it.
class Explored {
 public:
  explicit Explored(const OptionMap& own = {}, Retries retries = Retries::kForAShortTime);
  Explored(const Explored&) = delete;
  Explored& operator=(const Explored&) = delete;

  // Phase 0: what is in the table to begin with, and whether growth is announced then.
  check::Participant Begin(std::vector<check::Call> calls, bool announces = false);
  check::Program Do(Prelude prelude, std::vector<check::Call> calls);
  // A client that runs undisturbed: each of its calls must succeed.
  check::Program DoAlone(std::vector<check::Call> calls);
  check::Program Verify();

  check::Scenario scenario;

 private:
  Task<Done> BeginWith(check::Actor& self, std::vector<check::Call> calls, bool announces);
  Task<Done> Perform(check::Actor& self, Prelude prelude, std::vector<check::Call> calls);

  const Retries retries_;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Engine> grower_;
};

// ---- scenarios: each makes the participants of one

// Two fresh puts of a key, of which one may die or lose a completion, and a reader.
void TwoPutAKey(Explored& explored);
// The key's primary slot is taken, and emptied beside the two: one of them goes to the secondary slot.
void TwoPutAKeyWhereASlotComesFree(Explored& explored);
// A key stands in its secondary slot. A blind insert, and a change beside it.
void InsertMeetsAChange(Explored& explored);
// A put of another key has to move the key from its secondary slot to its primary one, or back, and may die.
// Beside it one change or two, and perhaps a reader.
enum class Beside { kPut, kDelete, kPutAndDelete };
enum class Direction { kToPrimary, kToSecondary };
void MigrationMeets(Explored& explored, Direction direction, Beside beside, bool is_read);
// The same client moves the key to its primary slot and back, beside a reader.
void KeyGoesAndComesBack(Explored& explored);
// A key that was moved once. One client updates it; another one deletes it, takes its slot, and inserts it
// again: into the other one.
void KeyIsMadeAnewInItsOtherSlot(Explored& explored);
// A migrator may die: it leaves a claim, or two copies. Then two change the key at the same time.
void TwoMeetWhatAMigratorLeft(Explored& explored);
// A writer may die: it leaves a pending entry, over a value or over none. Then another meets it, and a
// reader.
void SuccessorMeetsAPendingEntry(Explored& explored, bool fresh);
// The same beside the key in its other slot.
void SuccessorMeetsAFreshEntryBesideTheKey(Explored& explored);

// A slot is split by a client that knows of the growth and may die, beside a client that knows only of the
// announcement, may die, and changes what moves. Perhaps a second one changes it, and a reader reads it, that
// know as little.
enum class Moving { kPut, kInsert, kDelete, kPutAndDelete };
void SplitMeets(Explored& explored, Moving moving, bool is_read);

// What an exploration has found; nothing if nothing is wrong. A client that waits for a writer that never
// goes on, because the fabric never gets round to it, waits for ever: such paths are cut.
std::string ProblemOf(const check::Exploration& found);
inline std::string ProblemOf(const check::Scenario& scenario) { return ProblemOf(check::Explore(scenario)); }

}  // namespace farside::index::nessie
