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

// What tables want to learn is READ before the epoch: an operation may know the epoch and not what came
// before it (pool/4).
inline constexpr MutantName kRootBeforeEpoch{"pool/listener-reads-before-epoch"};

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
// A client that leaves gives up its chunks although a dead client may have leaked blocks of them (alloc/7).
inline constexpr MutantName kLeaveUnswept{"pool/chunk-left-with-leaks"};
// Chunks without an owner are taken without a look at the registry for dead clients that leaked blocks.
inline constexpr MutantName kTakeBlindly{"pool/ownerless-chunk-taken-blindly"};
// The slot of a dead client is released after one look for its chunks: a chunk that it got later is lost.
inline constexpr MutantName kReleaseSlotTooEarly{"pool/slot-released-without-a-second-look"};

// ---- steps of a newcomer that makes room for itself (join.cc)

// The slot of a dead client is released before every client knows that the client is dead.
inline constexpr MutantName kReleaseSlotUnannounced{"pool/newcomer-releases-a-slot-before-all-know"};
// The last slot of a dead client is released although chunks without an owner may hold its leaked blocks.
inline constexpr MutantName kReleaseLastDeadSlot{"pool/newcomer-releases-the-last-dead-slot"};

}  // namespace farside::pool
