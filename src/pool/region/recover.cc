#include "pool/region/recover.h"

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "pool/catalog/layout.h"
#include "pool/memory/carving.h"
#include "pool/mutants.h"

namespace farside::pool {
namespace {

// The slot of the client that owns all chunks; any would do.
constexpr uint32_t kOwnerSlot = 0;

class Recovery {
 public:
  Recovery(std::span<std::byte> region, const Geometry& geometry)
      : region_(region), geometry_(geometry), carving_(fabric::NodeId{0}, geometry) {}

  void Run() {
    if (!Mutant(kKeepHalfMade)) FreeHalfMadeTables();
    if (!Mutant(kKeepBrokenExtents)) DropBrokenExtents();
    if (!Mutant(kKeepLostRests)) DropLostRests();
    ClearBitmaps();
    MakeRegistryAnew();
    if (!Mutant(kKeepLock)) Store(kCatalogLockOffset, LockWord().word());  // INVARIANT durable/8
    if (!Mutant(kKeepHandler)) Store(kHandlerOffset, 0);
  }

 private:
  uint64_t Load(uint64_t offset) const { return LoadU64(region_.data() + offset); }
  // Pages that do not change stay clean.
  void Store(uint64_t offset, uint64_t word) {
    if (Load(offset) != word) StoreU64(region_.data() + offset, word);
  }
  ChunkWord WordOf(uint64_t chunk) const { return ChunkWord(Load(geometry_.chunk_word(chunk))); }
  void SetWord(uint64_t chunk, ChunkWord word) { Store(geometry_.chunk_word(chunk), word.word()); }
  bool IsSound(uint64_t chunk) const { return carving_.IsSound(chunk, WordOf(chunk)); }

  // INVARIANT durable/3, durable/4: a creator has told nobody, and a dropper has decided. An entry stands on
  // the home of its table alone; what the table has on other nodes is reachable from no entry any more.
  void FreeHalfMadeTables() {
    for (uint32_t slot = 0; slot < geometry_.table_slots; ++slot) {
      const uint64_t at = geometry_.table_entry(slot);
      const TableWord word(Load(at));
      const bool half_made = word.state() == TableState::kCreating || word.state() == TableState::kDropping;
      if (word.valid() && half_made) Store(at, word.With(TableState::kFree).word());
    }
  }

  // INVARIANT durable/5: an extent that a table reaches has all of its words. One that lacks some was being
  // claimed or freed, or its words are stale; what of them is left would never be freed.
  void DropBrokenExtents() {
    for (uint64_t head = 0; head < geometry_.chunks(); ++head) {
      if (WordOf(head).state() != ChunkState::kExtent || !IsSound(head)) continue;
      if (!IsWhole(head)) SetWord(head, ChunkWord());
    }
  }
  // A damaged word may be any.
  bool IsWhole(uint64_t head) const {
    for (uint32_t i = 1; i < WordOf(head).argument(); ++i) {
      if (IsSound(head + i) && WordOf(head + i) != ChunkWord(ChunkState::kExtentRest, i, Owner()))
        return false;
    }
    return true;
  }

  // All extents are whole now. The rest of one whose first word is damaged stays: it may be in use.
  void DropLostRests() {
    for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk) {
      const ChunkWord word = WordOf(chunk);
      if (word.state() != ChunkState::kExtentRest || !IsSound(chunk)) continue;
      const uint64_t head = chunk - word.argument();
      if (!IsSound(head)) continue;
      const bool is_part =
          WordOf(head).state() == ChunkState::kExtent && WordOf(head).argument() > word.argument();
      if (!is_part) SetWord(chunk, ChunkWord());
    }
  }

  // INVARIANT durable/10.
  void ClearBitmaps() {
    if (Mutant(kKeepBitmaps)) return;
    for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk) {
      const ChunkWord word = WordOf(chunk);
      if (word.state() != ChunkState::kBlocks || !IsSound(chunk)) continue;
      const uint32_t words = carving_.classes().shape(word.argument()).bitmap_words();
      for (uint32_t i = 0; i < words; ++i) Store(geometry_.chunk(chunk) + uint64_t{i} * 8, 0);
    }
  }

  // INVARIANT durable/8. Generations go on from what survived, though no word that counts names an old one.
  void MakeRegistryAnew() {
    const Owner owner = AllChunksToOne();
    for (uint32_t slot = 0; slot < geometry_.client_slots; ++slot) {
      const uint64_t at = geometry_.client_slot(slot);
      const ClientWord free(ClientState::kFree, ClientWord(Load(at)).generation(), fabric::ClientId::kNone);
      const bool owns = !owner.is_none() && slot == kOwnerSlot;
      if (Mutant(kKeepRegistry) && !owns) continue;
      const ClientWord fenced(ClientState::kFenced, owner.generation(), fabric::ClientId::kNone);
      Store(at, owns ? fenced.word() : free.word());
      for (uint64_t word = kPulseOffset; word < kLine; word += 8) Store(at + word, 0);
    }
  }

  // No owner if no chunk can be owned: then there is nothing to adopt.
  Owner AllChunksToOne() {
    Owner owner;
    for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk) {
      const ChunkWord word = WordOf(chunk);
      if (!word.CanBeOwned() || !IsSound(chunk)) continue;
      if (owner.is_none()) owner = NewOwner();
      if (!Mutant(kKeepOwners)) SetWord(chunk, word.WithOwner(owner));
    }
    return owner;
  }
  // The same one again if this is the second run.
  Owner NewOwner() const {
    const ClientWord word(Load(geometry_.client_slot(kOwnerSlot)));
    const bool again = word.state() == ClientState::kFenced && word.generation() != 0 &&
                       word.fabric_client() == fabric::ClientId::kNone;
    const uint32_t generation =
        again ? word.generation() : word.JoinedBy(fabric::ClientId::kNone).generation();
    return Owner(kOwnerSlot, generation);
  }

  const std::span<std::byte> region_;
  const Geometry& geometry_;
  const Carving carving_;
};

}  // namespace

void Recover(std::span<std::byte> region, const Geometry& geometry) { Recovery(region, geometry).Run(); }

Status Recover(std::span<std::byte> region, const Persist& persist, const Geometry& geometry) {
  Recover(region, geometry);
  return Mutant(kOpeningNotDurable) ? OkStatus() : persist(0, geometry.region_bytes);
}

}  // namespace farside::pool
