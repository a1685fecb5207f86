// What every step of a change takes along.
#pragma once

#include <cstdint>

#include "fabric/address.h"
#include "fabric/op.h"
#include "index/nessie/layout.h"
#include "index/nessie/partition.h"

namespace farside::index::nessie {

struct Access {
  fabric::Op& op;
  Partition& part;
  const uint64_t birth;  // the epoch of the operation's pin: the birth of what it retires

  const Shape& shape() const { return part.shape(); }
  fabric::NodeId node() const { return part.node(); }
};

}  // namespace farside::index::nessie
