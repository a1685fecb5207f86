#include "pool/catalog/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "pool/catalog/placement.h"
#include "pool/members/lock.h"
#include "pool/mutants.h"

namespace farside::pool {

using fabric::Cas;
using fabric::Faa;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::NodeId;
using fabric::Op;
using fabric::Read;
using fabric::WriteObject;

namespace {

// READs that show one state word, and never the body that goes with it, before the entry counts as damaged.
// The second began after the word was there, the third ends while it still is: a body that is not whole then
// never was.
constexpr int kReadsUntilDamaged = 4;
// Attempts of a reader to see the catalog while no client moves a name from one entry to another.
constexpr int kMostLists = 100;
// Names that the error about a missing table suggests.
constexpr size_t kMostSuggestions = 5;

uint64_t Checksum(const TableBody& body, uint32_t incarnation) {
  return Hash64(std::as_bytes(std::span(&body, 1)).subspan(sizeof(body.checksum)), incarnation);
}

template <size_t kSize>
void CopyText(std::array<char, kSize>& to, uint8_t& bytes, std::string_view text) {
  assert(text.size() <= kSize);
  std::copy(text.begin(), text.end(), to.begin());
  bytes = static_cast<uint8_t>(text.size());
}

// The bytes of the character that `text` begins with, 0 if they are no UTF-8 (RFC 3629) or a control
// character.
size_t PrintableCharacter(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first < 0xc2 || first > 0xf4 || !continues(1)) return 0;
  if (first == 0xc2 && byte(1) < 0xa0) return 0;  // the control characters U+0080 to U+009F
  if (first < 0xe0) return 2;
  if (!continues(2) || (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
  if (first < 0xf0) return 3;
  if (!continues(3) || (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
  return 4;
}

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    const size_t character = PrintableCharacter(text);
    if (character == 0) return false;
    text.remove_prefix(character);
  }
  return true;
}

Error Invalid(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Status CheckEngineAndOptions(std::string_view engine, std::string_view options) {
  if (engine.empty() || engine.size() > kMaxEngineNameBytes || !IsPrintable(engine)) {
    return Invalid(fmt::format("the name of an engine has 1 to {} printable characters; \"{}\" does not",
                               kMaxEngineNameBytes, Escape(engine.substr(0, kMaxEngineNameBytes))));
  }
  if (options.size() > kMaxTableOptionsBytes) {
    return Invalid(fmt::format("the options have {} bytes; a table can record {}", options.size(),
                               kMaxTableOptionsBytes));
  }
  if (!IsPrintable(options)) return Invalid("the options hold control characters, or are no UTF-8");
  return OkStatus();
}

Status CheckNodes(std::span<const NodeId> nodes, size_t nodes_of_the_pool) {
  if (nodes.empty() || nodes.size() > kMaxTableNodes) {
    return Invalid(fmt::format("a table lives on 1 to {} nodes, not on {}", kMaxTableNodes, nodes.size()));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (Index(nodes[i]) >= nodes_of_the_pool) {
      return Invalid(
          fmt::format("the table names node {}, but the pool has {}", Index(nodes[i]), nodes_of_the_pool));
    }
    if (std::find(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(i), nodes[i]) !=
        nodes.begin() + static_cast<ptrdiff_t>(i)) {
      return Invalid(fmt::format("the table names node {} twice", Index(nodes[i])));
    }
  }
  return OkStatus();
}

// Roots lie where the nodes are, on lines, inside their regions.
Status CheckRoots(std::span<const NodeId> nodes, std::span<const FarAddr> roots,
                  std::span<const uint64_t> region_bytes) {
  if (roots.size() != nodes.size()) {
    return Invalid(fmt::format("a table on {} nodes has {} roots", nodes.size(), roots.size()));
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    const FarAddr root = roots[i];
    // The size of a node that was never reached is not known (0); no verb gets there anyway.
    const uint64_t* const bytes = fabric::ForNode(region_bytes, root.node);
    const bool inside = bytes != nullptr && (*bytes == 0 || root.offset < *bytes);
    if (root.node != nodes[i] || root.offset % kLine != 0 || !inside ||
        root.offset > RootWord::Offset::kMax) {
      return Invalid(
          fmt::format("the root at {:#x} of node {} is none: it must be a line of the region of node {}",
                      root.offset, Index(root.node), Index(nodes[i])));
    }
  }
  return OkStatus();
}

Status CheckSpec(const TableSpec& spec, size_t nodes_of_the_pool) {
  if (Status name = CheckTableName(spec.name); !name.ok()) return name;
  if (Status texts = CheckEngineAndOptions(spec.engine, spec.options); !texts.ok()) return texts;
  return CheckNodes(spec.nodes, nodes_of_the_pool);
}

Error Damaged(FarAddr entry, std::string_view what) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the catalog entry at {:#x} of node {} is damaged: {}; run a check of the pool",
                           entry.offset, Index(entry.node), what));
}

Error AllTaken(std::span<const TableEntry> entries, NodeId node) {
  const auto dropping = std::count_if(entries.begin(), entries.end(), [](const TableEntry& entry) {
    return entry.state.valid() && entry.state.state() == TableState::kDropping;
  });
  return Error(
      ErrorCode::kOutOfMemory,
      fmt::format("all {} table slots of node {} are taken, {} of them by tables that are being dropped; {}",
                  entries.size(), Index(node), dropping,
                  dropping > 0 ? "retry later" : "drop a table, or make the pool with more slots"));
}

Error LostTheLock() {
  return Error(ErrorCode::kFenced,
               "the catalog was taken from this client, which was taken for dead; reconnect");
}

}  // namespace

// A name that was looked up: the table, or what else there is.
struct Catalog::Found {
  std::optional<TableInfo> table;
  std::vector<std::string> others;
};

NodeId HomeOf(std::string_view name, size_t nodes) {
  std::vector<NodeId> all;
  for (size_t i = 0; i < nodes; ++i) all.push_back(static_cast<NodeId>(i));
  return all[PickNode(Hash64(name), all)];
}

Status CheckTableName(std::string_view name) {
  if (name.empty()) return Invalid("the name of a table has at least one character");
  if (name.size() > kMaxTableNameBytes) {
    return Invalid(fmt::format("the name \"{}...\" has {} bytes; names of tables have at most {}",
                               Escape(name.substr(0, 16)), name.size(), kMaxTableNameBytes));
  }
  if (!IsPrintable(name) || name.find('/') != std::string_view::npos || name == "." || name == "..") {
    return Invalid(
        fmt::format("\"{}\" is no name for a table: names are UTF-8 without control characters and without "
                    "'/', and not '.' or '..'",
                    Escape(name)));
  }
  return OkStatus();
}

TableBody EncodeTable(const TableInfo& table) {
  TableBody body{};
  body.engine_layout_version = table.engine_layout_version;
  CopyText(body.name, body.name_bytes, table.name);
  CopyText(body.engine, body.engine_bytes, table.engine);
  CopyText(body.options, body.options_bytes, table.options);
  assert(table.roots.size() <= kMaxTableNodes);
  body.node_count = static_cast<uint8_t>(table.roots.size());
  std::transform(table.roots.begin(), table.roots.end(), body.roots.begin(),
                 [](FarAddr root) { return RootWord(root); });
  body.checksum = Checksum(body, table.incarnation);
  return body;
}

Result<TableInfo> DecodeTable(const TableEntry& entry, FarAddr at, std::span<const uint64_t> region_bytes) {
  const TableBody& body = entry.body;
  if (Checksum(body, entry.state.incarnation()) != body.checksum)
    return Damaged(at, "its checksum does not match");
  // The checksum is no defence against a hostile writer, so nothing below trusts it.
  if (body.name_bytes > kMaxTableNameBytes || body.engine_bytes > kMaxEngineNameBytes ||
      body.options_bytes > kMaxTableOptionsBytes || body.node_count > kMaxTableNodes) {
    return Damaged(at, "a part of it is larger than its place");
  }
  TableInfo table;
  table.name.assign(body.name.data(), body.name_bytes);
  table.engine.assign(body.engine.data(), body.engine_bytes);
  table.options.assign(body.options.data(), body.options_bytes);
  table.engine_layout_version = body.engine_layout_version;
  table.incarnation = entry.state.incarnation();
  table.entry = at;
  for (size_t i = 0; i < body.node_count; ++i) {
    table.roots.push_back(body.roots[i].address());
    table.nodes.push_back(table.roots.back().node);
  }
  if (Status name = CheckTableName(table.name); !name.ok()) return Damaged(at, name.error().message());
  if (Status texts = CheckEngineAndOptions(table.engine, table.options); !texts.ok()) {
    return Damaged(at, texts.error().message());
  }
  if (Status nodes = CheckNodes(table.nodes, region_bytes.size()); !nodes.ok())
    return Damaged(at, nodes.error().message());
  if (Status roots = CheckRoots(table.nodes, table.roots, region_bytes); !roots.ok()) {
    return Damaged(at, roots.error().message());
  }
  return table;
}

// ---- reading -----------------------------------------------------------------------------------------

Task<Catalog::Entries> Catalog::ReadEntries(Op& op) {
  Entries entries(member_.geometry().table_slots);
  co_await op.InOrder(ForMaintenance(
      Read(member_.At(member_.geometry().catalog()), std::as_writable_bytes(std::span(entries)))));
  if (durable()) co_await MakeEntriesDurable(op, entries);
  co_return entries;
}

// What a live entry says. kNotFound if it is not live any more, or is another table's by now.
//
// INVARIANT catalog/2: a body that does not match its word was sampled while the entry moved on; then the
// word has moved on too.
Task<TableInfo> Catalog::DecodeOrReadAgain(Op& op, TableEntry entry, uint32_t slot) {
  const FarAddr at = EntryAt(slot);
  const TableWord word = entry.state;
  for (int reads = 1;; ++reads) {
    Result<TableInfo> table = DecodeTable(entry, at, op.client().region_bytes());
    if (table.ok() || reads == kReadsUntilDamaged) co_return table;
    op.CountRetry();
    entry = co_await op.InOrder(ForMaintenance(Read<TableEntry>(at)));
    if (entry.state != word) co_return Error(ErrorCode::kNotFound, "the table was dropped");
  }
}

// Finds the name among the live entries. A damaged entry may be the one, so that nothing is said to be absent
// then.
Task<Catalog::Found> Catalog::LookUp(Op& op, Entries entries, std::string name) {
  Found found;
  std::optional<Error> damaged;
  for (uint32_t slot = 0; slot < entries.size(); ++slot) {
    if (!entries[slot].state.valid()) damaged = Damaged(EntryAt(slot), "its state is none");
    if (!entries[slot].state.valid() || entries[slot].state.state() != TableState::kLive) continue;
    Result<TableInfo> table = co_await DecodeOrReadAgain(op, entries[slot], slot).Outcome();
    if (!table.ok() && table.error().code() == ErrorCode::kCorrupt) damaged = table.error();
    if (!table.ok() && table.error().code() != ErrorCode::kCorrupt &&
        table.error().code() != ErrorCode::kNotFound) {
      co_return table.error();
    }
    if (!table.ok()) continue;
    if (table->name == name) {
      found.table = std::move(*table);
      co_return found;
    }
    found.others.push_back(std::move(table->name));
  }
  if (damaged.has_value()) co_return *damaged;
  co_return found;
}

Task<TableInfo> Catalog::Open(Op& op, std::string name) {
  if (Status valid = CheckTableName(name); !valid.ok()) co_return valid.error();
  Entries entries = co_await ReadEntries(op);  // trip 1
  Found found = co_await LookUp(op, std::move(entries), name);
  if (found.table.has_value()) co_return std::move(*found.table);
  std::sort(found.others.begin(), found.others.end());
  std::string others;
  for (size_t i = 0; i < std::min(found.others.size(), kMostSuggestions); ++i) {
    others += fmt::format("{}\"{}\"", i == 0 ? "; there is " : ", ", Escape(found.others[i]));
  }
  if (found.others.size() > kMostSuggestions) others += ", ...";
  co_return Error(ErrorCode::kNotFound, fmt::format("there is no table \"{}\"{}", Escape(name), others));
}

// Entries are sampled one after another, so a table that was dropped and created anew may be met twice; then
// the catalog is read again.
Task<std::vector<TableInfo>> Catalog::List(Op& op) {
  for (int attempt = 0; attempt < kMostLists; ++attempt) {
    const Entries entries = co_await ReadEntries(op);
    std::vector<TableInfo> tables;
    for (uint32_t slot = 0; slot < entries.size(); ++slot) {
      if (!entries[slot].state.valid()) co_return Damaged(EntryAt(slot), "its state is none");
      if (entries[slot].state.state() != TableState::kLive) continue;
      Result<TableInfo> table = co_await DecodeOrReadAgain(op, entries[slot], slot).Outcome();
      if (table.ok()) tables.push_back(std::move(*table));
      if (!table.ok() && table.error().code() != ErrorCode::kNotFound) co_return table.error();
    }
    std::sort(tables.begin(), tables.end(),
              [](const TableInfo& a, const TableInfo& b) { return a.name < b.name; });
    const auto twice =
        std::adjacent_find(tables.begin(), tables.end(),
                           [](const TableInfo& a, const TableInfo& b) { return a.name == b.name; });
    if (twice == tables.end()) co_return tables;
    op.CountRetry();
  }
  co_return Error(ErrorCode::kCorrupt,
                  fmt::format("the catalog of node {} names a table twice; run a check of the pool",
                              Index(member_.node())));
}

Task<bool> Catalog::StillThere(Op& op, TableInfo table) {
  const uint64_t word = co_await op.InOrder(ForMaintenance(Read<uint64_t>(table.entry)));
  const bool there = TableWord(word) == TableWord(TableState::kLive, table.incarnation);
  if (!there && durable()) co_await MakeStateDurable(op, table.entry);  // INVARIANT durable/4
  co_return there;
}

// ---- under the lock ----------------------------------------------------------------------------------

Task<Done> Catalog::Lock(Op& op) {
  // Whether the last holder died does not matter: what it left is found by its state (ReadAndTidy).
  if (!Mutant(kCatalogWithoutLock)) co_await AcquireLock(op, member_, kCatalogLockOffset);
  co_return Done{};
}

Task<Done> Catalog::Unlock(Op& op) {
  if (!Mutant(kCatalogWithoutLock)) co_await ReleaseLock(op, member_, kCatalogLockOffset);
  co_return Done{};
}

Task<Done> Catalog::Announce(Op& op) {
  co_await op.InOrder(ForMaintenance(Faa(member_.At(kCatalogChangesOffset), 1)));
  co_return Done{};
}

// The entries, and nothing half made among them but what living clients are dropping.
Task<Catalog::Entries> Catalog::ReadAndTidy(Op& op) {
  Entries entries = co_await ReadEntries(op);
  for (uint32_t slot = 0; slot < entries.size(); ++slot) {
    const TableWord word = entries[slot].state;
    if (!word.valid()) continue;
    bool freed = false;
    // Entries are in creation under the lock only, and that is ours: the client that began this one is gone,
    // or has failed.
    if (word.state() == TableState::kCreating) {
      const TableWord free = word.With(TableState::kFree);
      freed =
          word.word() == co_await op.InOrder(ForMaintenance(Cas(EntryAt(slot), word.word(), free.word())));
    }
    if (word.state() == TableState::kDropping) freed = co_await FinishDrop(op, entries[slot], slot);
    if (freed) entries[slot].state = word.With(TableState::kFree);
  }
  co_return entries;
}

// Frees the entry of a table whose dropper is gone; false if it is not. Needs no lock: a word in kDropping
// has one successor, and its worker is alive or cut off.
Task<bool> Catalog::FinishDrop(Op& op, TableEntry entry, uint32_t slot) {
  const Standing worker =
      co_await member_.StandingOf(op, Owner::FromBits(static_cast<uint32_t>(entry.worker)));
  if (worker == Standing::kAlive) co_return false;
  // INVARIANT catalog/4: the dropper may have died before it came to this.
  co_await Announce(op);
  const TableWord free = entry.state.With(TableState::kFree);
  co_await op.InOrder(ForMaintenance(Cas(EntryAt(slot), entry.state.word(), free.word())));
  co_return true;
}

Task<CreateOutcome> Catalog::Create(Op& op, TableSpec spec, MakeRoots make_roots) {
  if (Status valid = CheckSpec(spec, op.client().region_bytes().size()); !valid.ok()) co_return valid.error();
  co_await Lock(op);  // trip 1
  Result<CreateOutcome> outcome = co_await CreateLocked(op, std::move(spec), std::move(make_roots)).Outcome();
  // Decided, whatever becomes of the lock. A client that cannot unlock is broken, and its lock will be taken
  // over.
  Result<Done> unlocked = co_await Unlock(op).Outcome();
  co_return outcome;
}

Task<CreateOutcome> Catalog::CreateLocked(Op& op, TableSpec spec, MakeRoots make_roots) {
  const Entries entries = co_await ReadAndTidy(op);  // trip 2
  // INVARIANT catalog/1: under the lock a name that is absent stays absent.
  Found found = co_await LookUp(op, entries, spec.name);
  if (found.table.has_value()) {
    CreateOutcome there;
    there.table = std::move(*found.table);
    co_return there;
  }
  const auto is_free = [](const TableEntry& entry) {
    return entry.state.valid() && entry.state.state() == TableState::kFree;
  };
  const auto entry = std::find_if(entries.begin(), entries.end(), is_free);
  if (entry == entries.end()) {
    co_return AllTaken(entries, member_.node());
  }

  TableInfo table;
  table.name = std::move(spec.name);
  table.engine = std::move(spec.engine);
  table.options = std::move(spec.options);
  table.engine_layout_version = spec.engine_layout_version;
  table.nodes = std::move(spec.nodes);
  table.entry = EntryAt(static_cast<uint32_t>(entry - entries.begin()));
  const TableWord claimed = entry->state.Claimed();
  table.incarnation = claimed.incarnation();
  const uint64_t worker = member_.self().bits();
  auto [written, old] =
      co_await op.InOrder(ForMaintenance(WriteObject(table.entry + kWorkerOffset, worker)),
                          ForMaintenance(Cas(table.entry, entry->state.word(), claimed.word())));
  if (old != entry->state.word()) co_return LostTheLock();

  Result<TableInfo> filled = co_await Fill(op, table, claimed, std::move(make_roots)).Outcome();
  if (!filled.ok()) {
    // If this fails too, the next holder of the lock does it.
    const TableWord free = claimed.With(TableState::kFree);
    auto freed = co_await op.InOrder(ForMaintenance(Cas(table.entry, claimed.word(), free.word()))).Outcome();
    co_return filled.error();
  }
  CreateOutcome created;
  created.table = std::move(*filled);
  created.created = true;
  co_return created;
}

// Makes the claimed entry a table.
Task<TableInfo> Catalog::Fill(Op& op, TableInfo table, TableWord claimed, MakeRoots make_roots) {
  table.roots = co_await make_roots(op, table);
  if (Status valid = CheckRoots(table.nodes, table.roots, op.client().region_bytes()); !valid.ok())
    co_return valid.error();
  const TableBody body = EncodeTable(table);
  if (durable()) {
    const bool live = co_await MakeLiveDurably(op, table, claimed, body);
    if (!live) co_return LostTheLock();
    co_return table;
  }
  // INVARIANT catalog/2 and catalog/3: WRITE, CAS keep their order, so the body is complete when the table is
  // there.
  auto [written, old] = co_await op.InOrder(
      ForMaintenance(WriteObject(table.entry + kBodyOffset, body)),
      ForMaintenance(Cas(table.entry, claimed.word(), claimed.With(TableState::kLive).word())));
  if (old != claimed.word()) co_return LostTheLock();
  // The table is there; clients that watch the catalog learn of it later if this is lost.
  Result<Done> announced = co_await Announce(op).Outcome();
  co_return table;
}

Task<Done> Catalog::Drop(Op& op, std::string name, WaitForGrace wait_for_grace, FreeTable free_table) {
  if (Status valid = CheckTableName(name); !valid.ok()) co_return valid.error();
  co_await Lock(op);
  Result<TableInfo> dropped = co_await DropLocked(op, name).Outcome();
  Result<Done> unlocked = co_await Unlock(op).Outcome();
  if (!dropped.ok()) co_return dropped.error();
  Result<Done> freed =
      co_await Free(op, *dropped, std::move(wait_for_grace), std::move(free_table)).Outcome();
  if (freed.ok()) co_return freed;
  // Codes that promise that nothing was changed would be wrong here.
  const ErrorCode code = freed.error().code();
  const bool cut_off = code == ErrorCode::kUnavailable || code == ErrorCode::kFenced;
  co_return Error(cut_off ? ErrorCode::kOutcomeUnknown : code,
                  fmt::format("the table \"{}\" is dropped, but not all of it is free yet: {}", Escape(name),
                              freed.error().message()));
}

// Decides that the table is dropped.
Task<TableInfo> Catalog::DropLocked(Op& op, std::string name) {
  const Entries entries = co_await ReadAndTidy(op);
  Found found = co_await LookUp(op, entries, name);
  if (!found.table.has_value()) {
    co_return Error(ErrorCode::kNotFound, fmt::format("there is no table \"{}\" to drop", Escape(name)));
  }
  TableInfo table = std::move(*found.table);
  const TableWord live(TableState::kLive, table.incarnation);
  const uint64_t worker = member_.self().bits();
  auto [written, old] = co_await op.InOrder(
      ForMaintenance(WriteObject(table.entry + kWorkerOffset, worker)),
      ForMaintenance(Cas(table.entry, live.word(), live.With(TableState::kDropping).word())));
  if (old != live.word()) co_return LostTheLock();
  // INVARIANT durable/4.
  if (!durable() || Mutant(kDropNotDurable)) co_return table;
  const Result<Done> made = co_await MakeStateDurable(op, table.entry).Outcome();
  if (made.ok()) co_return table;
  co_return Error(ErrorCode::kOutcomeUnknown,
                  fmt::format("the table \"{}\" is dropped, but may be there again after a power cut: {}",
                              Escape(table.name), made.error().message()));
}

// Gives back everything that the table, which this client has dropped, occupies.
Task<Done> Catalog::Free(Op& op, TableInfo table, WaitForGrace wait_for_grace, FreeTable free_table) {
  // INVARIANT catalog/4 and catalog/5: no client uses the table when it is freed.
  co_await Announce(op);
  Result<Done> freed = co_await wait_for_grace(op).Outcome();
  if (freed.ok()) freed = co_await free_table(op, table).Outcome();
  // If not everything was freed, no table reaches the rest, and this client does not try again: a sweep may.
  const TableWord dropping(TableState::kDropping, table.incarnation);
  co_await op.InOrder(
      ForMaintenance(Cas(table.entry, dropping.word(), dropping.With(TableState::kFree).word())));
  co_return freed;
}

// ---- for a sweep -------------------------------------------------------------------------------------

// All is decided by one look at each entry. A table that is dropped after that look is walked all the same:
// its dropper waits for the operation that walks.
Task<std::vector<TableInfo>> Catalog::TablesToWalk(Op& op) {
  const Error busy(ErrorCode::kContended, "a table is being made or dropped; sweep later");
  const Entries entries = co_await ReadEntries(op);
  std::vector<TableInfo> tables;
  for (uint32_t slot = 0; slot < entries.size(); ++slot) {
    if (!entries[slot].state.valid()) co_return Damaged(EntryAt(slot), "its state is none");
    switch (entries[slot].state.state()) {
      case TableState::kFree: break;  // INVARIANT catalog/4: announced
      case TableState::kCreating: {
        // Its bytes are those of a client that lives, or will be swept.
        const bool being_made = co_await IsBeingMade(op, entries[slot]);
        if (being_made) co_return busy;
        break;
      }
      case TableState::kDropping: {
        const bool finished = co_await FinishDrop(op, entries[slot], slot);
        if (!finished) co_return busy;
        break;
      }
      case TableState::kLive: {
        Result<TableInfo> table = co_await DecodeOrReadAgain(op, entries[slot], slot).Outcome();
        if (!table.ok() && table.error().code() == ErrorCode::kNotFound) co_return busy;
        if (!table.ok()) co_return table.error();
        tables.push_back(std::move(*table));
        break;
      }
    }
  }
  co_return tables;
}

}  // namespace farside::pool
