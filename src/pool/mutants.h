// The planted bugs of the pool; a test must catch each by name.
#pragma once

#include "base/mutant.h"

namespace farside::pool {

// ---- the five that a pool must not have

// No fence before the takeover: a client is declared dead, and its locks and memory are taken, while its
// verbs can still land (pool/2).
inline constexpr MutantName kSlotBeforeFence{"pool/no-fence-before-takeover"};
// A block is reused at once: what was unlinked is given back without waiting for operations that may look at
// it (alloc/3).
inline constexpr MutantName kReuseAtOnce{"pool/block-reused-at-once"};
// The epoch is published too early: by a client with an older operation in flight (pool/1).
inline constexpr MutantName kPublishTooEarly{"pool/epoch-published-too-early"};
// A lost adoption: the slot of a dead client is released, and no client takes over its chunks (alloc/7).
inline constexpr MutantName kSkipAdoption{"pool/lost-adoption"};
// A catalog race: tables are created and dropped without the lock.
inline constexpr MutantName kCatalogWithoutLock{"pool/catalog-race"};

// ---- steps of a sync

// The epoch of an operation that has ended is given up while a verb of it, which no coroutine awaits, is on
// its way (pool/1).
inline constexpr MutantName kForgetDetached{"pool/detached-verb-outlives-its-epoch"};
// An epoch waits for verbs of later operations, too: a client that always has some never publishes.
inline constexpr MutantName kAwaitAllDetached{"pool/epoch-waits-for-all-detached-verbs"};

// What tables want to learn is READ before the epoch: an operation may know the epoch and not what came
// before it (pool/4).
inline constexpr MutantName kRootBeforeEpoch{"pool/listener-reads-before-epoch"};
// Both are READ by one trip on a fabric that samples READs of a trip in any order (pool/4).
inline constexpr MutantName kLinesInAnyOrder{"pool/listener-reads-in-any-order"};

// A walk gives no signs of life, so that a client that sweeps large tables is taken for dead over it.
inline constexpr MutantName kWalkSilently{"pool/walk-without-signs-of-life"};

// ---- steps of clients that go offline and come back (presence.cc)

// The pulse that says offline is not awaited: it may overtake the one that ends that (off/1).
inline constexpr MutantName kOfflineNotAwaited{"pool/offline-not-awaited"};
// A client goes offline over a verb that no coroutine awaits (off/1).
inline constexpr MutantName kOfflineOverDetached{"pool/offline-over-detached-verb"};
// A client goes offline with an operation in flight (off/1).
inline constexpr MutantName kOfflineInOperation{"pool/offline-in-operation"};
// The trip that goes offline adds for a listener (off/3).
inline constexpr MutantName kOfflineAdds{"pool/offline-adds"};
// Operations begin when one node has answered (off/2).
inline constexpr MutantName kOnlineBeginsEarly{"pool/online-begins-early"};
// A client that comes back READs first and publishes then (off/2).
inline constexpr MutantName kOnlineReadsFirst{"pool/online-reads-first"};
// A client that comes back does not READ the lines of listeners (off/2).
inline constexpr MutantName kOnlineNoRider{"pool/online-without-listeners"};
// A client comes back on one node, and stays offline on the others (off/2).
inline constexpr MutantName kOnlineOneNode{"pool/online-on-one-node"};
// The trip that comes back adds for a listener (off/3).
inline constexpr MutantName kOnlineAdds{"pool/online-adds"};
// A sync adds for a table although the catalog has changed since it was last seen there (off/3).
inline constexpr MutantName kAddUnvalidated{"pool/listener-adds-unvalidated"};
// A look takes a slot that is offline for one that has published everything (off/4).
inline constexpr MutantName kLookUncapped{"pool/look-uncapped"};
// A look counts a slot that is offline as the epoch that is known when the answer comes (off/4).
inline constexpr MutantName kCapWhenAnswered{"pool/look-capped-when-answered"};
// Going offline counts as having published everything, for the birth of what is retired later (off/6).
inline constexpr MutantName kOfflineBirth{"pool/offline-birth"};
// Chunks lose their owner while it is offline (off/5).
inline constexpr MutantName kDisownOffline{"pool/disowned-offline"};

// ---- steps of the allocator

// What was retired is stamped with the epoch that the client knew before: operations that began since are
// not waited for (alloc/3).
inline constexpr MutantName kStampTooEarly{"pool/retired-block-stamped-too-early"};
// A client reports that all that it has retired was given back: a sweep takes the rest for leaked.
inline constexpr MutantName kSettledTooEarly{"pool/settled-too-early"};
// A harvest gives back all blocks of a bitmap word, not only those whose bits it has cleared.
inline constexpr MutantName kHarvestTooMuch{"pool/harvest-frees-more-than-it-cleared"};
// The first chunk of an extent is freed before the others: if the client dies between, they are lost.
inline constexpr MutantName kExtentHeadFirst{"pool/extent-freed-head-first"};
// A sweep frees what its walk did not meet without waiting for any other client.
inline constexpr MutantName kSweepAtOnce{"pool/sweep-without-waiting"};
// A sweep does not wait for operations in flight, which may still read what it frees.
inline constexpr MutantName kSweepUnderReaders{"pool/sweep-under-own-readers"};
// The slot of a client that leaves is free while verbs of it can still land (pool/2).
inline constexpr MutantName kLeavesInFlight{"pool/leaves-with-verbs-in-flight"};
// A client that leaves gives up its chunks although a dead client may have leaked blocks of them (alloc/7).
inline constexpr MutantName kLeaveUnswept{"pool/chunk-left-with-leaks"};
// Chunks without an owner are taken without a look at the registry for dead clients that leaked blocks.
inline constexpr MutantName kTakeBlindly{"pool/ownerless-chunk-taken-blindly"};
// The slot of a dead client is released after one look for its chunks: a chunk that it got later is lost.
inline constexpr MutantName kReleaseSlotTooEarly{"pool/slot-released-without-a-second-look"};

// ---- steps of an evacuation

// A chunk that is evacuated goes on handing out blocks (evac/2), and what an evacuation read of a block is
// what it copies, however old that is (evac/1). Either alone does no harm: a block that is not handed out
// again keeps its bytes, and a copy that is made of what the entry names is right.
inline constexpr MutantName kHandsOutAndCopiesEarly{"pool/evacuates-hands-out-and-copies-early"};
// A chunk that was evacuated is released while blocks of it still wait for grace (evac/3).
inline constexpr MutantName kReleaseInGrace{"pool/evacuates-releases-in-grace"};

// ---- steps of a search for room (room.h)

// A client that is told that another one wants room says that it has given back what it could, and keeps it.
inline constexpr MutantName kRoomNotAnswered{"pool/room-not-answered"};
// A client says that the pool is full before the others had a chance to give something back.
inline constexpr MutantName kFullBeforeConclusive{"pool/full-before-conclusive"};

// ---- what must be durable, and what must be made anew when a region is opened (region/recover.h)

// A pool is made, and its old magic stands while that is under way; or the new one before the rest of the
// superblock, or before what it vouches for, is durable (superblock/1).
inline constexpr MutantName kMagicKept{"pool/magic-kept-while-a-pool-is-made"};
inline constexpr MutantName kMagicNotLast{"pool/magic-not-last"};
inline constexpr MutantName kSuperblockNotDurable{"pool/superblock-not-durable-before-its-magic"};
inline constexpr MutantName kZerosNotDurable{"pool/zeros-not-durable-before-the-magic"};
// Clients are served before what an opening has found and put in order is durable (durable/1).
inline constexpr MutantName kOpeningNotDurable{"pool/opening-not-durable"};
// Blocks of a chunk are handed out before its word is durable (durable/5): by the client that has claimed it,
// by one that has taken it over, and those of extents.
inline constexpr MutantName kChunkNotDurable{"pool/chunk-word-not-durable"};
inline constexpr MutantName kTakenNotDurable{"pool/taken-chunk-word-not-durable"};
inline constexpr MutantName kExtentNotDurable{"pool/extent-words-not-durable"};
// A table is live before its catalog entry is durable (durable/3).
inline constexpr MutantName kBodyNotDurable{"pool/catalog-body-not-durable"};
// A table is reported as made before it is durable that it is live (durable/3).
inline constexpr MutantName kLiveNotDurable{"pool/live-not-durable"};
// A client acts on what it has read of the catalog although that is not durable (durable/3, durable/4).
inline constexpr MutantName kActOnLost{"pool/acts-on-what-may-be-lost"};
// The same of a drop alone (durable/4).
inline constexpr MutantName kActOnLostDrop{"pool/acts-on-a-drop-that-may-be-lost"};
// A client uses a pool of which the nodes may forget that they belong to it (durable/2).
inline constexpr MutantName kIdentityNotDurable{"pool/identity-not-durable"};
// Memory of a dropped table is given back before the drop is durable (durable/4).
inline constexpr MutantName kDropNotDurable{"pool/drop-not-durable"};
// Tables that were being made or dropped stay so (durable/3, durable/4).
inline constexpr MutantName kKeepHalfMade{"pool/half-made-tables-kept-at-opening"};
// An extent of which some words did not survive stays one (durable/5).
inline constexpr MutantName kKeepBrokenExtents{"pool/broken-extents-kept-at-opening"};
// Words of extents that are there no more stay (durable/5).
inline constexpr MutantName kKeepLostRests{"pool/lost-rests-kept-at-opening"};
// Clients of before, and what they have locked, count as before (durable/8).
inline constexpr MutantName kKeepRegistry{"pool/registry-kept-at-opening"};
inline constexpr MutantName kKeepLock{"pool/lock-kept-at-opening"};
// Bitmaps keep what survived in them (durable/10).
inline constexpr MutantName kKeepBitmaps{"pool/bitmaps-kept-at-opening"};
// Chunks keep the owner that survived, which is registered no more (durable/8).
inline constexpr MutantName kKeepOwners{"pool/owners-kept-at-opening"};
// The handler that ran when the power was cut still counts as one that runs (durable/8).
inline constexpr MutantName kKeepHandler{"pool/handler-kept-at-opening"};

// A sweep ends while a living client makes a table, of which it has put a root on a node that lost its power
// since (durable/7).
inline constexpr MutantName kSweepUnderCreator{"pool/sweep-while-a-table-is-made"};

// ---- steps of a newcomer that makes room for itself (join.cc)

// The slot of a dead client is released before every client knows that the client is dead.
inline constexpr MutantName kReleaseSlotUnannounced{"pool/newcomer-releases-a-slot-before-all-know"};
// The last slot of a dead client is released although chunks without an owner may hold its leaked blocks.
inline constexpr MutantName kReleaseLastDeadSlot{"pool/newcomer-releases-the-last-dead-slot"};

}  // namespace farside::pool
