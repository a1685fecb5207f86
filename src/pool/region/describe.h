// What lies where in a pool, in words; for traces and reports.
#pragma once

#include <string>

#include "fabric/address.h"
#include "pool/region/layout.h"

namespace farside::pool {

// "epoch", "client slot 3 pulse", "table entry 0", "chunk word 7", "chunk 7+0x40".
std::string Describe(fabric::FarAddr at, const Geometry& geometry);

}  // namespace farside::pool
