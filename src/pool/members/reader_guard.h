// What a client that may only read has to change all the same: its own registration, because others must know
// what it may still be reading (pool/1). A node asks this before it executes a changing verb of such a
// client.
//
//   CAS of a slot's state word      to take a free slot in its own name; and of a slot that has its name
//   WRITE of a slot's pulse         of a slot that has its name
//
// Everything else is refused. So the worst that a reader can do is to take slots, and to keep its epoch back:
// memory that others free waits for it, as for any member, until its connection is closed and it is fenced.
#pragma once

#include "fabric/address.h"
#include "fabric/service.h"
#include "fabric/verb.h"
#include "pool/region/layout.h"

namespace farside::pool {

bool ReaderMay(const fabric::NodeMemory& memory, const Geometry& geometry, fabric::ClientId reader,
               const fabric::Verb& verb);

}  // namespace farside::pool
