// What of a durable pool survives a power cut, and what is made anew whenever its region is opened.
//
// Of the words that were not made durable, a cut keeps any subset, each as it was at some moment since it was
// last made durable. So a word of the pool is either durable before anything depends on it, or nothing
// depends on it after a cut. These are the rules; docs/persistence.md lists all words.
//
//   durable/1  The process that opens a region recovers it (Recover), and makes all of it durable, before a
//              client is served. So a word that a client finds is durable, unless a client has changed it
//              since the region was opened. What an earlier process could not write, because the disk
//              failed, counts as lost in a power cut: the region is read anew from the disk first.
//   durable/2  The superblock is durable since the pool was made (superblock/1). The identity of every node
//              is durable before a client has the pool open that could make a table (node_identity.h).
//   durable/3  The body of a catalog entry, and all that its roots need, is durable before the entry says
//              kLive. That word is durable before any client acts on it: its creator tells of the table only
//              then, and so does a member that finds the table.
//   durable/4  kDropping is durable before memory of the table is given back, before its entry is free, and
//              before any client acts on it, say by making another table of the same name. So an incarnation
//              that a client has seen live is never given to another table.
//   durable/5  The words of a chunk or an extent are durable before the first block of it is handed out, by
//              the client that claimed it or by one that took it over. Nothing else about chunks needs to be:
//              a word changes its state or size only while no table reaches a block of its chunk (alloc/4),
//              and a block that a table reaches was handed out. So where anything durable stands, the word
//              says what it said when the block was handed out; and a word that went stale, because its
//              chunk was freed, names a chunk that no table reaches, and a sweep frees it again.
//   durable/6  What a table links was durable before, and is durably unlinked before it is retired or given
//              back. That is the business of engines that claim to be durable (Traits::durable).
//   durable/7  A pointer stands on the node that it points to, and a client links by a Call of that node, or
//              makes its WRITE durable by one. A node that was opened anew refuses the clients that it had
//              (fabric/30); so nothing that they had put there becomes reachable later, although they may
//              live on at other nodes, and all of it can be swept. The roots in a catalog entry are the one
//              exception: a sweep waits for a table that a living client makes (Catalog::TablesToWalk).
//   durable/8  Registry, pulses and lock say nothing about clients after an opening, and no handler runs:
//              clients that were registered are refused (durable/7). So all slots are free; but if chunks
//              are in use, one slot is that of a fenced client that owns all of them, and which the fabric
//              never had. The members adopt what it has, sweep, and release its slot, as after every death
//              (adopt.cc).
//   durable/9  epoch, catalog_changes, deaths and room_wanted keep the value that survived. Clients compare
//              them only with what they have read since they joined, and every client joins after the
//              opening; no table remembers them (durable engines must not).
//  durable/10  Bitmaps of chunks are cleared: a bit that is set may be older than the block's last use. A
//              clear one says "in use, or leaked", and the sweep after an opening tells which.
#pragma once

#include <cstddef>
#include <span>

#include "farside/result.h"
#include "pool/region/layout.h"
#include "pool/region/superblock.h"

namespace farside::pool {

// Puts the region of a durable pool in order, whichever of its words survived. No client may use it. It can
// be cut off at any point and run again; run twice, it changes nothing the second time. Words that no client
// writes are left for a check of the pool to find.
void Recover(std::span<std::byte> region, const Geometry& geometry);
// And makes all of it durable, as the process that opens a region must (durable/1).
Status Recover(std::span<std::byte> region, const Persist& persist, const Geometry& geometry);

}  // namespace farside::pool
