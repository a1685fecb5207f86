// Ends a node with a message when its file loses pages while it is mapped.
//
// A thread that touches such a page gets a SIGBUS. Another process has cut the file short, or the disk fails;
// either way the bytes are gone, and the node cannot go on. The message says which of the two it was.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace farside::tools {

// From now on a SIGBUS in `region`, which is the file behind `descriptor`, ends the process with kCouldNotRun
// and one line on stderr. Other bus errors end it without a message of ours. Once per process; the mapping
// and the descriptor must last until it ends.
void ExplainBusErrors(std::span<const std::byte> region, int descriptor, const std::string& path);

}  // namespace farside::tools
