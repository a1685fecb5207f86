#include "pool/region/describe.h"

#include <fmt/format.h>

namespace farside::pool {

std::string Describe(fabric::FarAddr at, const Geometry& geometry) {
  const uint64_t offset = at.offset;
  if (offset < kControlOffset) return "superblock";
  if (offset == kEpochOffset) return "epoch";
  if (offset == kCatalogChangesOffset) return "catalog changes";
  if (offset == kDeathsOffset) return "deaths";
  if (offset == kRoomWantedOffset) return "room wanted";
  if (offset == kCatalogLockOffset) return "catalog lock";
  if (offset == kIdentityOffset) return "identity";
  if (offset == kHandlerOffset) return "change under way";
  if (offset < geometry.registry()) return "superblock page";
  if (offset < geometry.client_slot(geometry.client_slots)) {
    const uint64_t inside = (offset - geometry.registry()) % kLine;
    const uint64_t slot = (offset - geometry.registry()) / kLine;
    return fmt::format("client slot {}{}", slot,
                       inside == 0              ? ""
                       : inside == kPulseOffset ? " pulse"
                                                : " heartbeat");
  }
  if (offset >= geometry.catalog() && offset < geometry.table_entry(geometry.table_slots)) {
    return fmt::format("table entry {}", (offset - geometry.catalog()) / kTableEntryBytes);
  }
  if (offset >= geometry.chunk_table() && offset < geometry.chunk_word(geometry.chunks())) {
    return fmt::format("chunk word {}", (offset - geometry.chunk_table()) / 8);
  }
  const uint64_t chunk = geometry.chunk_of(offset);
  if (chunk == geometry.chunks()) return "";
  return fmt::format("chunk {}+{:#x}", chunk, offset - geometry.chunk(chunk));
}

}  // namespace farside::pool
