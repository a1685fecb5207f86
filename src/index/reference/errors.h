// What operations of the reference table fail with.
#pragma once

#include "fabric/address.h"
#include "farside/result.h"

namespace farside::index::reference {

// Attempts of one operation; each of them met a change by another client, or waited for a pause.
inline constexpr int kMostAttempts = 1000;

Error Damaged(fabric::FarAddr bucket);
// Writers kept coming between the lines of the READs.
Error Contended();
// Another client holds the lock of the bucket.
Error Locked();

}  // namespace farside::index::reference
