// A request to stop, by SIGINT (Ctrl-C) or SIGTERM, for commands that have to put something in order first.
#pragma once

#include "tools/common/exit_code.h"

namespace farside::tools {

// How a command ends that was asked to stop, and has stopped. As a shell reports a death by SIGINT.
inline constexpr ExitCode kInterrupted{130};

// From now on the first of these signals is only noted, and a second one ends the process at once. A signal
// that the process was started to ignore, as programs in the background of a script are, stays ignored.
void NoteStopRequests();

// Whether there was one.
bool StopRequested();

}  // namespace farside::tools
