// What a client that may only read has to change all the same: one slot of the registry, because others must
// know what it may still be reading (pool/1).
//
//   CAS of a slot's state word      free -> joining, with the next generation and its own name
//                                   joining -> live
//                                   joining or live -> free
//   WRITE inside of the pulse       while the slot is joining or live
//
// INVARIANT reader/1: the slot of a reader is the one that this very connection has taken, and not given back
// since. It is not told from the memory, where the name of any client may stand. The record is as good as the
// memory: other clients change a slot only after the FENCE of its client has ended (pool/2), and then no verb
// of the connection takes effect any more (node/1).
//
// INVARIANT reader/2: a connection registers once. So generations of a slot do not come back any sooner than
// clients can connect (pool/3).
//
// INVARIANT reader/3: when the connection is gone, so is its registration. A reader owns nothing, so there is
// nothing to adopt: the node frees the slot itself, or, if the line of the slot is held by a client that does
// not go on, when the next reader comes. A slot that another client has marked as fenced is left
// to the members, which may rely on it (join.cc).
//
// INVARIANT reader/4: the readers of a node together have at most half of its slots (of a single slot, that
// one). So clients that may write can join, however many connections a reader makes. The slot of a reader
// that another client has fenced counts until a member has released it; the node looks when the next reader
// comes.
//
// So the worst that a connection can do is to take one slot, and to keep its epoch back: memory that others
// free waits for it, as for any member, until it is closed.
#pragma once

#include "fabric/memory/reader_guard.h"
#include "pool/region/layout.h"

namespace farside::pool {

// For the server of a node with a pool in its memory: one for all of its readers.
fabric::memory::NewReaderGuard GuardReaders(const Geometry& geometry);

}  // namespace farside::pool
