#include "pool/fsck/fsck.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <span>

#include "base/bytes.h"
#include "pool/catalog/catalog.h"
#include "pool/fsck/node_check.h"
#include "pool/region/epoch.h"
#include "pool/region/node_identity.h"
#include "pool/region/superblock.h"

namespace farside::pool {

using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::NodeId;
using fabric::Op;
using fabric::Read;

namespace {

constexpr uint64_t kReadAtOnce = uint64_t{1} << 20;

bool SameShape(const Geometry& a, const Geometry& b) {
  return a.region_bytes == b.region_bytes && a.client_slots == b.client_slots &&
         a.table_slots == b.table_slots && a.chunk_bytes == b.chunk_bytes && a.durable == b.durable;
}

}  // namespace

uint64_t FsckBytes::Total() const {
  return metadata + free_chunks + overhead + reachable + free_blocks + held + abandoned + leaked + unknown +
         damaged;
}

void FsckReport::Add(Severity severity, FarAddr where, std::string what, std::string advice) {
  ++(severity == Severity::kNote ? notes : severity == Severity::kLeak ? leaks : damages);
  if (findings.size() < kMostFindings) {
    findings.push_back(Finding{severity, where, std::move(what), std::move(advice)});
  }
}

std::string NodeCheck::NameOf(Owner owner) {
  return fmt::format("client {{slot {}, generation {}}}", owner.slot(), owner.generation());
}

// Empty if the numbers can be those of a pool in a region of this size.
std::string NodeCheck::ProblemWith(const Geometry& geometry, uint64_t region_bytes) {
  if (geometry.region_bytes > region_bytes) return "it is larger than the region";
  if (geometry.client_slots == 0 || geometry.client_slots > kMaxClientSlots)
    return "no pool has so many client slots";
  if (geometry.chunk_bytes < kMinChunkBytes || !std::has_single_bit(geometry.chunk_bytes)) {
    return "no pool has chunks of this size";
  }
  if (geometry.table_slots > kMaxTableSlots) return "no pool has so many table slots";
  if (geometry.table_slots == 0 || geometry.chunks() == 0) return "it leaves no room for tables";
  return "";
}

Task<FsckReport> NodeCheck::Run() {
  co_await CheckHead();
  co_await CheckRegistry();
  co_await CheckCatalog();
  SortMarks();
  co_await CheckChunks();
  if (options_.read_blocks) co_await CheckBlocks();
  report_.bytes.metadata += geometry_.first_chunk();
  report_.bytes.overhead += region_bytes() - geometry_.chunk(geometry_.chunks());
  co_return std::move(report_);
}

// ---- metadata ----------------------------------------------------------------------------------------

// Takes memory as the bytes come: the shape is what the node says, and it may say anything.
Task<std::vector<std::byte>> NodeCheck::ReadRange(uint64_t begin, uint64_t end) {
  std::vector<std::byte> bytes;
  while (bytes.size() < end - begin) {
    const size_t before = bytes.size();
    bytes.resize(before + std::min<uint64_t>(kReadAtOnce, end - begin - before));
    co_await op_.InOrder(ForMaintenance(Read(At(begin + before), std::span(bytes).subspan(before))));
  }
  co_return bytes;
}

Task<Done> NodeCheck::CheckHead() {
  const std::vector<std::byte> page = co_await ReadRange(0, kPage);
  const Result<Superblock> superblock = CheckSuperblock(page, region_bytes());
  if (!superblock.ok()) {
    Damage(At(0), "the superblock: " + superblock.error().message(), kRestore);
  } else if (!SameShape(GeometryOf(*superblock), geometry_)) {
    Damage(At(0), "the superblock describes another shape than the one that is checked",
           "check the shape that it describes");
  }
  Control control;
  std::memcpy(&control, page.data() + kControlOffset, sizeof(control));
  std::memcpy(&lock_, page.data() + kCatalogLockOffset, sizeof(lock_));
  epoch_ = control.epoch;
  if (epoch_ > kMostEpoch)
    Damage(At(kEpochOffset), fmt::format("the epoch is {:#x}, which cannot be", epoch_), kRestore);
  const uint64_t lock_end = kCatalogLockOffset + sizeof(lock_);
  const uint64_t identity_end = kIdentityOffset + sizeof(NodeIdentity);
  if (!IsZero(std::as_bytes(std::span(control.zero))) ||
      !IsZero(std::span(page).subspan(lock_end, kIdentityOffset - lock_end)) ||
      !IsZero(std::span(page).subspan(identity_end))) {
    Damage(At(kControlOffset), "the first page has bits where none are used", kRestore);
  }
  co_return Done{};
}

Task<Done> NodeCheck::CheckRegistry() {
  clients_ = co_await ReadTable<ClientSlot>(geometry_.registry(), geometry_.client_slots, geometry_.catalog(),
                                            "registry");
  for (uint32_t slot = 0; slot < geometry_.client_slots; ++slot) CheckClient(slot, clients_[slot]);
  CheckLock();
  co_return Done{};
}

void NodeCheck::CheckClient(uint32_t slot, const ClientSlot& client) {
  const FarAddr at = At(geometry_.client_slot(slot));
  const uint64_t word = client.state.word();
  const bool is_self = options_.self.has_value() && *options_.self == Owner(slot, client.state.generation());
  if (client.state.undefined()) {
    clients_died_ = true;
    Damage(at,
           fmt::format("client slot {} is in state {}, which no client writes", slot,
                       ClientWord::State::Get(word)),
           kAdopted);
    return;
  }
  if (ClientWord::Unused::Get(word) != 0 || !IsZero(std::as_bytes(std::span(client.zero)))) {
    Damage(at, fmt::format("client slot {} has bits where none are used", slot), kRestore);
    return;
  }
  const bool offline = client.pulse.epoch == kOfflineEpoch;
  if (!offline && client.pulse.epoch > epoch_ && client.state.state() == ClientState::kLive) {
    Damage(at,
           fmt::format("client slot {} has published epoch {}, and the epoch is {}", slot, client.pulse.epoch,
                       epoch_),
           "let its client leave or be fenced; until then nothing is reclaimed");
  }
  switch (client.state.state()) {
    case ClientState::kFree: break;
    case ClientState::kJoining:
    case ClientState::kLive:
      ++report_.counts.clients_live;
      if (is_self) break;
      other_clients_live_ |= !options_.no_client_runs;
      clients_died_ |= options_.no_client_runs;
      Note(at, fmt::format("{} is registered", NameOf(Owner(slot, client.state.generation()))),
           options_.no_client_runs ? kAdopted : "nothing, if it runs; otherwise its lease ends");
      break;
    case ClientState::kFenced:
      ++report_.counts.clients_fenced;
      clients_died_ = true;
      Note(at, fmt::format("{} was fenced", NameOf(Owner(slot, client.state.generation()))), kAdopted);
      break;
  }
}

NodeCheck::Fate NodeCheck::FateOf(Owner owner) const {
  if (owner.is_none()) return Fate::kNoOwner;
  if (owner.slot() >= clients_.size() || owner.generation() == 0) return Fate::kNonsense;
  const ClientWord word = clients_[owner.slot()].state;
  if (word.generation() != owner.generation() || word.state() == ClientState::kFree) return Fate::kGone;
  if (options_.self.has_value() && *options_.self == owner) return Fate::kAlive;
  const bool dead = word.state() == ClientState::kFenced || word.undefined();
  return dead || options_.no_client_runs ? Fate::kDead : Fate::kAlive;
}

void NodeCheck::CheckLock() {
  if (lock_.free()) return;
  const FarAddr at = At(kCatalogLockOffset);
  const Fate holder = FateOf(lock_.owner());
  if (LockWord::Unused::Get(lock_.word()) != 0 || holder == Fate::kNonsense || holder == Fate::kNoOwner) {
    Damage(at, fmt::format("the lock of the catalog is {:#x}, which names no client", lock_.word()),
           kRestore);
  } else {
    Note(at,
         fmt::format("the lock of the catalog is held by {}, which {}", NameOf(lock_.owner()),
                     holder == Fate::kAlive ? "is registered" : "is gone"),
         kNothingToDo);
  }
}

Task<Done> NodeCheck::CheckCatalog() {
  const std::vector<TableEntry> entries = co_await ReadTable<TableEntry>(
      geometry_.catalog(), geometry_.table_slots, geometry_.chunk_table(), "catalog");
  std::map<std::string, FarAddr> names;
  for (uint32_t slot = 0; slot < geometry_.table_slots; ++slot) {
    const TableEntry& entry = entries[slot];
    const FarAddr at = At(geometry_.table_entry(slot));
    if (!entry.state.valid()) {
      Damage(at, fmt::format("catalog entry {} has the state {:#x}, which is none", slot, entry.state.word()),
             kRestore);
      continue;
    }
    if (entry.state.state() == TableState::kFree) continue;
    if (entry.state.state() != TableState::kLive) {
      CheckHalfMade(entry, at);
      continue;
    }
    const Result<TableInfo> table = DecodeTable(entry, at, op_.client().region_bytes());
    if (!table.ok()) {
      Damage(at, table.error().message(), kRestore);
      continue;
    }
    ++report_.counts.tables_live;
    if (!names.emplace(table->name, at).second) {
      Damage(at, fmt::format("the table \"{}\" stands twice in the catalog", Escape(table->name)),
             kDropTable);
    }
  }
  co_return Done{};
}

void NodeCheck::CheckHalfMade(const TableEntry& entry, FarAddr at) {
  ++report_.counts.tables_half_made;
  const Owner worker = Owner::FromBits(static_cast<uint32_t>(entry.worker));
  const bool creating = entry.state.state() == TableState::kCreating;
  if (FateOf(worker) == Fate::kNonsense || FateOf(worker) == Fate::kNoOwner || entry.worker >> 32 != 0) {
    Damage(at,
           fmt::format("a table is being {} by {:#x}, which is no client", creating ? "created" : "dropped",
                       entry.worker),
           kRestore);
    return;
  }
  Note(at,
       fmt::format("a table is being {} by {}, which {}", creating ? "created" : "dropped", NameOf(worker),
                   FateOf(worker) == Fate::kAlive ? "is registered" : "is gone"),
       kNothingToDo);
}

Task<FsckReport> Fsck(Op& op, NodeId node, Geometry geometry, const Reached& reached, FsckOptions options) {
  const uint64_t* const region_bytes = fabric::ForNode(op.client().region_bytes(), node);
  FsckReport report;
  if (region_bytes == nullptr) {
    report.Add(Severity::kDamage, FarAddr(node, 0), fmt::format("there is no node {}", Index(node)),
               "check the nodes there are");
    co_return report;
  }
  const std::string problem = NodeCheck::ProblemWith(geometry, *region_bytes);
  if (!problem.empty()) {
    report.Add(Severity::kDamage, FarAddr(node, 0), "the shape of the pool makes no sense: " + problem,
               std::string(kRestore));
    report.bytes.damaged = *region_bytes;
    co_return report;
  }
  NodeCheck check(op, node, geometry, reached, options);
  report = co_await check.Run();
  co_return report;
}

}  // namespace farside::pool
