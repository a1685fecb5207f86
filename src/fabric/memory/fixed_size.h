// Descriptors of files that cannot be cut short.
//
// A process that maps a file for writing needs a descriptor with which it could also truncate it, and every
// process that has the file mapped would get a SIGBUS where the pages were. Memory without a name (memfd) is
// sealed against that; files have no seals. But a descriptor that was opened under a Landlock rule without
// the right to truncate (Linux 6.2) does not have it in any other process either, so it can be given away.
//
// What it does not prevent: a process that may open the file by its path can truncate it that way, and
// fallocate(FALLOC_FL_COLLAPSE_RANGE), which ext4 and XFS have, makes a file shorter and needs only the right
// to write.
#pragma once

#include <string>

namespace farside::fabric::memory {

// As open(2): -1, and errno, if it cannot be done. Where the kernel has no such rule, the descriptor is like
// any other.
int OpenAtFixedSize(const std::string& path, int flags);

// Whether the descriptor of a file refuses to change its size.
bool HasFixedSize(int descriptor);

}  // namespace farside::fabric::memory
