// The bytes of a pool: what every node's region holds besides the tables.
//
//   offset    what                                    size
//   0         superblock, control line, lock of the   one page
//             catalog, identity, change under way
//   4 KiB     client registry                         client_slots * 64 B
//   ...       catalog of tables                       table_slots * 512 B    starts on a page
//   ...       chunk table                             chunks * 8 B           starts on a page
//   ...       chunks                                  chunks * chunk_bytes   starts on a page, to the end
//
// Every node has all of it and needs no other node to be understood. See docs/layouts/pool.md.
//
// Numbers are little-endian. Words that are ever changed by CAS or FAA are changed by nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "fabric/address.h"

namespace farside::pool {

inline constexpr uint64_t kMagic = 0x0045444953524146;  // "FARSIDE\0"
inline constexpr uint32_t kLayoutVersion = 2;
inline constexpr uint32_t kEndianMark = 0x01020304;

inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kLine = fabric::kLineBytes;

// ---- superblock --------------------------------------------------------------------------------------

// Written once, when the pool is made: everything but the magic first, the magic last.
struct Superblock {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t endian_mark;
  uint64_t region_bytes;
  std::array<uint64_t, 2> region_id;  // random; another id means another pool: drop every cache
  uint16_t client_slots;
  uint16_t flags;  // see below; the others are zero
  uint32_t table_slots;
  uint64_t chunk_bytes;
  uint64_t checksum;  // of the bytes before it, the magic counted as kMagic
};
static_assert(sizeof(Superblock) == kLine);
static_assert(offsetof(Superblock, checksum) == 56);
// Flags: the pool is durable (durability.h).
inline constexpr uint16_t kDurablePool = 1;

// One line that every sync READs. Each word is changed by FAA or CAS only.
struct Control {
  uint64_t epoch;            // only rises
  uint64_t catalog_changes;  // raised after every change of the catalog
  uint64_t deaths;           // raised after every client that was fenced
  uint64_t room_wanted;      // raised by a client that found no room: others give back what they can
  std::array<uint64_t, 4> zero;
};
static_assert(sizeof(Control) == kLine);
inline constexpr uint64_t kControlOffset = 64;
inline constexpr uint64_t kEpochOffset = kControlOffset + offsetof(Control, epoch);
inline constexpr uint64_t kCatalogChangesOffset = kControlOffset + offsetof(Control, catalog_changes);
inline constexpr uint64_t kDeathsOffset = kControlOffset + offsetof(Control, deaths);
inline constexpr uint64_t kRoomWantedOffset = kControlOffset + offsetof(Control, room_wanted);
// The lock of the catalog, a LockWord on a line of its own.
inline constexpr uint64_t kCatalogLockOffset = 128;
// Which node of which pool this is, a NodeIdentity (node_identity.h) on a line of its own.
inline constexpr uint64_t kIdentityOffset = 192;
// Offset of what a handler of this node is changing now; 0: nothing, which it is whenever the region is
// opened. Stored by handlers alone, of which one runs at a time. For engines whose readers have to tell a
// change that is under way from one that a power cut has stopped.
inline constexpr uint64_t kHandlerOffset = 256;

// ---- clients -----------------------------------------------------------------------------------------

// The owner of a lock or a chunk: a slot of the registry and the generation of its registration. A slot is
// used again, a generation is not (it wraps after a million registrations of one slot).
//   31..12       11..0
//   generation   slot
class Owner {
 public:
  using Slot = Field<0, 12>;
  using Generation = Field<12, 20>;

  constexpr Owner() = default;  // no owner
  constexpr Owner(uint32_t slot, uint32_t generation)
      : bits_(static_cast<uint32_t>(Slot::Set(0, slot) | Generation::Set(0, generation))) {}
  static constexpr Owner FromBits(uint32_t bits) {
    Owner owner;
    owner.bits_ = bits;
    return owner;
  }

  constexpr uint32_t bits() const { return bits_; }
  constexpr uint32_t slot() const { return static_cast<uint32_t>(Slot::Get(bits_)); }
  constexpr uint32_t generation() const { return static_cast<uint32_t>(Generation::Get(bits_)); }
  constexpr bool is_none() const { return bits_ == 0; }  // generations start at 1

  friend constexpr bool operator==(Owner, Owner) = default;

 private:
  uint32_t bits_ = 0;
};
inline constexpr uint32_t kMaxClientSlots = uint32_t{Owner::Slot::kMax} + 1;

enum class ClientState : uint8_t {
  kFree = 0,     // unused; the generation is that of the last registration
  kJoining = 1,  // holds nothing yet
  kLive = 2,
  kFenced = 3,  // cut off from every node; what it held waits for adoption
};

// State word of a client slot. Changed by CAS only.
//   63..32          31..12       11..4    3..0
//   fabric client   generation   unused   state
class ClientWord {
 public:
  using State = Field<0, 4>;
  using Unused = Field<4, 8>;
  using Generation = Field<12, 20>;
  using FabricClient = Field<32, 32>;
  static_assert(TilesWord<State, Unused, Generation, FabricClient>());

  constexpr ClientWord() = default;
  explicit constexpr ClientWord(uint64_t word) : word_(word) {}
  constexpr ClientWord(ClientState state, uint32_t generation, fabric::ClientId client)
      : word_(State::Set(0, static_cast<uint64_t>(state)) | Generation::Set(0, generation) |
              FabricClient::Set(0, Number(client))) {}

  constexpr uint64_t word() const { return word_; }
  constexpr ClientState state() const { return static_cast<ClientState>(State::Get(word_)); }
  constexpr uint32_t generation() const { return static_cast<uint32_t>(Generation::Get(word_)); }
  constexpr fabric::ClientId fabric_client() const {
    return static_cast<fabric::ClientId>(FabricClient::Get(word_));
  }
  // A state that no client writes, so no client lives in the slot.
  constexpr bool undefined() const { return state() > ClientState::kFenced; }
  constexpr ClientWord With(ClientState state) const {
    return ClientWord(State::Set(word_, static_cast<uint64_t>(state)));
  }
  // Of a free slot: what the next client makes of it.
  constexpr ClientWord JoinedBy(fabric::ClientId client) const {
    const uint32_t next = generation() == Generation::kMax ? 1 : generation() + 1;
    return ClientWord(ClientState::kJoining, next, client);
  }
  // Of a slot that is in use: what it is afterwards.
  constexpr ClientWord Freed() const {
    return ClientWord(ClientState::kFree, generation(), fabric::ClientId::kNone);
  }

  friend constexpr bool operator==(ClientWord, ClientWord) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(ClientWord) == 8);

// What a client without an operation in flight publishes instead of an epoch, while it is offline.
inline constexpr uint64_t kOfflineEpoch = ~uint64_t{0};

// A heartbeat changes with every sync; one that stands still for a lease is suspect.
//   63..32     31..0
//   answered   beats
class Heartbeat {
 public:
  using Beats = Field<0, 32>;
  using Answered = Field<32, 32>;  // of room_wanted: the client has given back what it could for it
  static_assert(TilesWord<Beats, Answered>());

  static constexpr uint64_t Of(uint32_t beats, uint64_t room_wanted) {
    return Answered::Set(Beats::Set(0, beats), static_cast<uint32_t>(room_wanted));
  }
  // Whether the client has answered when room was wanted for this time, or later.
  static constexpr bool HasAnswered(uint64_t heartbeat, uint64_t room_wanted) {
    const auto ahead = static_cast<uint32_t>(Answered::Get(heartbeat)) - static_cast<uint32_t>(room_wanted);
    return static_cast<int32_t>(ahead) >= 0;
  }
};

// What a client says of itself; WRITTEN by it alone, in a sync all three words at once.
struct Pulse {
  uint64_t epoch;      // every operation in flight began after this epoch was read; or kOfflineEpoch
  uint64_t heartbeat;  // Heartbeat
  uint64_t settled;    // everything it retired before this epoch has been given back
};

struct ClientSlot {
  ClientWord state;
  Pulse pulse;
  std::array<uint64_t, 4> zero;
};
static_assert(sizeof(ClientSlot) == kLine);
static_assert(offsetof(ClientSlot, pulse) == 8);
inline constexpr uint64_t kPulseOffset = offsetof(ClientSlot, pulse);
inline constexpr uint64_t kHeartbeatOffset = kPulseOffset + offsetof(Pulse, heartbeat);

// A lock in far memory. Changed by CAS only; 0 is free.
//   63..32   31..0
//   unused   owner
class LockWord {
 public:
  using OwnerBits = Field<0, 32>;
  using Unused = Field<32, 32>;  // zero
  static_assert(TilesWord<OwnerBits, Unused>());

  constexpr LockWord() = default;
  explicit constexpr LockWord(uint64_t word) : word_(word) {}
  static constexpr LockWord HeldBy(Owner owner) { return LockWord(OwnerBits::Set(0, owner.bits())); }

  constexpr uint64_t word() const { return word_; }
  constexpr Owner owner() const { return Owner::FromBits(static_cast<uint32_t>(OwnerBits::Get(word_))); }
  constexpr bool free() const { return word_ == 0; }

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(LockWord) == 8);

// ---- chunks ------------------------------------------------------------------------------------------

enum class ChunkState : uint8_t {
  kFree = 0,
  kBlocks = 1,      // cut into blocks of one size class, which its owner hands out
  kExtent = 2,      // first chunk of a large block; `argument` is the number of chunks
  kExtentRest = 3,  // a further chunk of one; `argument` is its distance from the first
};

// What the blocks of a chunk are for.
enum class BlockUse : uint8_t {
  kStructure = 0,  // parts of tables: roots, segments, nodes, leaves; they stay where they are
  kRecords = 1,    // keys and values: a table can move each of them to another block (Index::Touch)
};
inline constexpr uint32_t kBlockUses = 2;

// Word of a chunk in the chunk table. Changed by CAS only.
//   63..53   52    51..20   19..4      3..0
//   unused   use   owner    argument   state
// `use` is that of the blocks of a chunk of blocks; 0 in all other states. A chunk of blocks without an owner
// was left by a client: its free blocks are all marked in its bitmap.
class ChunkWord {
 public:
  using State = Field<0, 4>;
  using Argument = Field<4, 16>;  // size class, or see ChunkState
  using OwnerBits = Field<20, 32>;
  using Use = Field<52, 1>;
  using Unused = Field<53, 11>;  // zero
  static_assert(TilesWord<State, Argument, OwnerBits, Use, Unused>());

  constexpr ChunkWord() = default;  // free
  explicit constexpr ChunkWord(uint64_t word) : word_(word) {}
  constexpr ChunkWord(ChunkState state, uint32_t argument, Owner owner, BlockUse use = BlockUse::kStructure)
      : word_(State::Set(0, static_cast<uint64_t>(state)) | Argument::Set(0, argument) |
              OwnerBits::Set(0, owner.bits()) | Use::Set(0, static_cast<uint64_t>(use))) {}

  constexpr uint64_t word() const { return word_; }
  constexpr ChunkState state() const { return static_cast<ChunkState>(State::Get(word_)); }
  constexpr uint32_t argument() const { return static_cast<uint32_t>(Argument::Get(word_)); }
  constexpr Owner owner() const { return Owner::FromBits(static_cast<uint32_t>(OwnerBits::Get(word_))); }
  constexpr BlockUse use() const { return static_cast<BlockUse>(Use::Get(word_)); }
  // Further chunks of an extent go with its first one.
  constexpr bool CanBeOwned() const {
    return state() == ChunkState::kBlocks || state() == ChunkState::kExtent;
  }
  constexpr ChunkWord WithOwner(Owner owner) const { return ChunkWord(OwnerBits::Set(word_, owner.bits())); }

  friend constexpr bool operator==(ChunkWord, ChunkWord) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(ChunkWord) == 8);

// ---- where everything is -----------------------------------------------------------------------------

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

inline constexpr uint64_t kTableEntryBytes = 512;
// One is taken by what a power cut left (recover.h), another one by the client that puts it in order.
inline constexpr uint32_t kFewestDurableSlots = 2;

// The shape of one region, from its superblock. Numbers only; nothing here reads memory.
struct Geometry {
  uint64_t region_bytes = 0;
  uint32_t client_slots = 0;
  uint32_t table_slots = 0;
  uint64_t chunk_bytes = 0;
  bool durable = false;  // what was acknowledged survives a power cut (durability.h)

  constexpr uint64_t registry() const { return kPage; }
  constexpr uint64_t catalog() const { return RoundUp(registry() + client_slots * kLine, kPage); }
  constexpr uint64_t chunk_table() const {
    return RoundUp(catalog() + table_slots * kTableEntryBytes, kPage);
  }
  // As many chunks as fit behind their table.
  constexpr uint64_t chunks() const {
    if (region_bytes <= chunk_table() + kPage || chunk_bytes == 0) return 0;
    const uint64_t left = region_bytes - chunk_table();
    uint64_t count = left / (chunk_bytes + 8);
    while (count > 0 && RoundUp(count * 8, kPage) + count * chunk_bytes > left) --count;
    return count;
  }
  constexpr uint64_t first_chunk() const { return chunk_table() + RoundUp(chunks() * 8, kPage); }

  constexpr uint64_t client_slot(uint32_t slot) const { return registry() + slot * kLine; }
  constexpr uint64_t table_entry(uint32_t slot) const { return catalog() + slot * kTableEntryBytes; }
  constexpr uint64_t chunk_word(uint64_t chunk) const { return chunk_table() + chunk * 8; }
  constexpr uint64_t chunk(uint64_t index) const { return first_chunk() + index * chunk_bytes; }
  // Which chunk an offset lies in; chunks() if in none.
  constexpr uint64_t chunk_of(uint64_t offset) const {
    if (offset < first_chunk()) return chunks();
    const uint64_t index = (offset - first_chunk()) / chunk_bytes;
    return index < chunks() ? index : chunks();
  }
};

}  // namespace farside::pool
