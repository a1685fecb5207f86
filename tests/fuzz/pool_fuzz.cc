// What a client reads of a pool before it knows anything: the superblock, and entries of the catalog. Both
// have checksums, which are no defence against a hostile writer, so most inputs get the right one.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "index/tables.h"
#include "pool/catalog/catalog.h"
#include "pool/region/superblock.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

using namespace pool;  // NOLINT(google-build-using-namespace): what is tried

constexpr uint64_t kRegionBytes = uint64_t{1} << 20;

// How an input begins.
constexpr uint8_t kIsCatalog = 1;
constexpr uint8_t kKeepsChecksum = 2;

void TrySuperblock(Superblock superblock, bool keeps_checksum) {
  const auto bytes = std::as_writable_bytes(std::span(&superblock, 1));
  if (!keeps_checksum) {
    superblock.magic = kMagic;
    superblock.checksum = Hash64(bytes.first(offsetof(Superblock, checksum)));
  }
  const Result<Superblock> checked = CheckSuperblock(bytes, kRegionBytes);
  if (!checked.ok()) {
    Require(!checked.error().message().empty(), "an error says something");
    return;
  }
  const Geometry geometry = GeometryOf(*checked);
  Require(geometry.region_bytes <= kRegionBytes, "a pool is not larger than its region");
  Require(geometry.first_chunk() <= kRegionBytes, "the chunks begin inside the region");
  Require(geometry.chunk(geometry.chunks()) <= kRegionBytes, "the chunks end inside the region");
  Require(geometry.table_entry(geometry.table_slots) <= geometry.chunk_table(), "the catalog has its place");
  Require(geometry.client_slot(geometry.client_slots) <= geometry.catalog(), "the registry has its place");
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

void TryEntry(TableEntry entry, bool keeps_checksum) {
  if (!keeps_checksum) {
    const auto body = std::as_bytes(std::span(&entry.body, 1));
    entry.body.checksum = Hash64(body.subspan(sizeof entry.body.checksum), entry.state.incarnation());
  }
  const std::array<uint64_t, 3> regions = {kRegionBytes, kRegionBytes / 2, kRegionBytes};
  const fabric::FarAddr at(fabric::NodeId{0}, 8192);
  const Result<TableInfo> table = DecodeTable(entry, at, regions);
  if (!table.ok()) {
    const std::string& message = table.error().message();
    Require(std::none_of(message.begin(), message.end(), IsControl), "an error can be printed");
    return;
  }
  Require(CheckTableName(table->name).ok(), "a table has a name that is one");
  Require(!table->nodes.empty() && table->nodes.size() == table->roots.size(), "a table has nodes");
  for (const fabric::FarAddr root : table->roots) {
    Require(Index(root.node) < regions.size() && root.offset < regions[Index(root.node)],
            "a root lies in a region");
  }
  static_cast<void>(index::ParseOptions(table->options));
}

}  // namespace

std::vector<Bytes> Seeds() {
  std::vector<std::byte> region(kRegionBytes);
  static_cast<void>(FormatVolatile(region, {.client_slots = 8, .table_slots = 8}, {1, 2}));
  std::vector<Bytes> seeds;
  for (const uint8_t how : {uint8_t{0}, kKeepsChecksum}) {
    Bytes superblock = {how};
    Append(superblock, *reinterpret_cast<const Superblock*>(region.data()));
    seeds.push_back(superblock);
    TableInfo table;
    table.name = "users";
    table.engine = "shard";
    table.options = "a=1,b=2";
    table.nodes = {fabric::NodeId{0}, fabric::NodeId{2}};
    table.roots = {fabric::FarAddr(fabric::NodeId{0}, 65536), fabric::FarAddr(fabric::NodeId{2}, 0)};
    TableEntry entry{};
    entry.body = EncodeTable(table);
    Bytes catalog = {static_cast<uint8_t>(how | kIsCatalog)};
    Append(catalog, entry);
    seeds.push_back(catalog);
  }
  return seeds;
}

void Try(Input input) {
  const auto how = input.Take<uint8_t>();
  const bool keeps_checksum = (how & kKeepsChecksum) != 0;
  if ((how & kIsCatalog) != 0) {
    TryEntry(input.Take<TableEntry>(), keeps_checksum);
  } else {
    TrySuperblock(input.Take<Superblock>(), keeps_checksum);
  }
}

}  // namespace farside::fuzz
