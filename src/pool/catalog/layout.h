// The bytes of the catalog: one entry for each table whose home is this node (see catalog.h).
//
//   offset  0       8        16         24        28  29  30  31      32     160      192       384     512
//           | state | worker | checksum | version | n | e | o | nodes | name | engine | options | roots |
//                                                   bytes of the name, the engine and the options
//
// Texts are padded with zeros. The body is what the checksum covers, which is everything behind `worker`; it
// is WRITTEN while the state is kCreating, and does not change while the state says otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "fabric/address.h"
#include "pool/region/layout.h"

namespace farside::pool {

inline constexpr size_t kMaxTableNameBytes = 128;
inline constexpr size_t kMaxEngineNameBytes = 32;
inline constexpr size_t kMaxTableOptionsBytes = 192;
inline constexpr size_t kMaxTableNodes = 16;

enum class TableState : uint8_t {
  kFree = 0,
  kCreating = 1,  // claimed, under the lock of the catalog; does not count
  kLive = 2,
  kDropping = 3,  // does not count any more; its worker frees its bytes, or has died
};

// State word of an entry. Changed by CAS only. The incarnation rises when the entry is claimed, and the
// states follow each other as they are numbered, or from kCreating back to kFree: so no word is ever seen
// twice.
//   63..32        31..4    3..0
//   incarnation   unused   state
class TableWord {
 public:
  using State = Field<0, 4>;
  using Unused = Field<4, 28>;  // zero
  using Incarnation = Field<32, 32>;
  static_assert(TilesWord<State, Unused, Incarnation>());

  constexpr TableWord() = default;  // never used
  explicit constexpr TableWord(uint64_t word) : word_(word) {}
  constexpr TableWord(TableState state, uint32_t incarnation)
      : word_(State::Set(0, static_cast<uint64_t>(state)) | Incarnation::Set(0, incarnation)) {}

  constexpr uint64_t word() const { return word_; }
  constexpr TableState state() const { return static_cast<TableState>(State::Get(word_)); }
  constexpr uint32_t incarnation() const { return static_cast<uint32_t>(Incarnation::Get(word_)); }
  // Whether a correct client may have written it.
  constexpr bool valid() const {
    return State::Get(word_) <= static_cast<uint64_t>(TableState::kDropping) && Unused::Get(word_) == 0;
  }
  constexpr TableWord With(TableState state) const {
    return TableWord(State::Set(word_, static_cast<uint64_t>(state)));
  }
  // Claims a free entry for its next table.
  constexpr TableWord Claimed() const { return TableWord(TableState::kCreating, incarnation() + 1); }

  friend constexpr bool operator==(TableWord, TableWord) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(TableWord) == 8);

// One node of a table, and where the table's part on it begins.
//   63..48   47..0
//   node     offset (a multiple of 64; 0: no root on this node)
class RootWord {
 public:
  using Offset = Field<0, 48>;
  using Node = Field<48, 16>;
  static_assert(TilesWord<Offset, Node>());

  constexpr RootWord() = default;
  explicit constexpr RootWord(fabric::FarAddr root)
      : word_(Offset::Set(0, root.offset) | Node::Set(0, Index(root.node))) {}

  constexpr uint64_t word() const { return word_; }
  constexpr fabric::FarAddr address() const {
    return fabric::FarAddr(static_cast<fabric::NodeId>(Node::Get(word_)), Offset::Get(word_));
  }

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(RootWord) == 8);

struct TableBody {
  uint64_t checksum;  // of the rest of the body, seeded with the incarnation
  uint32_t engine_layout_version;
  uint8_t name_bytes;
  uint8_t engine_bytes;
  uint8_t options_bytes;
  uint8_t node_count;
  std::array<char, kMaxTableNameBytes> name;
  std::array<char, kMaxEngineNameBytes> engine;
  std::array<char, kMaxTableOptionsBytes> options;
  std::array<RootWord, kMaxTableNodes> roots;
};
static_assert(offsetof(TableBody, name) == 16 && offsetof(TableBody, engine) == 144);
static_assert(offsetof(TableBody, options) == 176 && offsetof(TableBody, roots) == 368);
static_assert(kMaxTableNameBytes <= UINT8_MAX && kMaxEngineNameBytes <= UINT8_MAX);
static_assert(kMaxTableOptionsBytes <= UINT8_MAX && kMaxTableNodes <= UINT8_MAX);

struct TableEntry {
  TableWord state;
  // Bits of the Owner that creates or drops the table; WRITTEN by it, under the lock, before the state says
  // so.
  uint64_t worker;
  TableBody body;
};
static_assert(sizeof(TableEntry) == kTableEntryBytes);
static_assert(offsetof(TableEntry, worker) == 8 && offsetof(TableEntry, body) == 16);
// One READ samples an entry within the window that the fabric bounds.
static_assert(sizeof(TableEntry) <= fabric::kWindowBytes && fabric::kPageBytes % sizeof(TableEntry) == 0);
inline constexpr uint64_t kWorkerOffset = offsetof(TableEntry, worker);
inline constexpr uint64_t kBodyOffset = offsetof(TableEntry, body);

}  // namespace farside::pool
