#include "index/kit/growing_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fabric/ends_client.h"
#include "index/kit/mutants.h"
#include "pool/scoped_flag.h"

namespace farside::index {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;

namespace {

// Little at a time: others wait for as long as the wire takes for it.
constexpr uint64_t kZeroedByATrip = 16 * 1024;
// Bounds of how often a client syncs, in operations.
constexpr uint64_t kSyncAtMostEvery = 1;
constexpr uint64_t kSyncAtLeastEvery = 1 << 20;
// While a resize waits for its grace, a client syncs this often in the time that the table takes to fill by a
// thousandth; but also after so many operations, however large the table is: until then, changes cost
// more than they do otherwise.
constexpr double kGraceShare = 0.001;
constexpr uint64_t kGraceSyncAtLeastEvery = 32;

Error BadRoot(std::string_view engine, FarAddr root, const char* what) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the root of a {} table at {:#x} of node {} {}; run farside fsck", engine,
                           root.offset, fabric::Index(root.node), what));
}

}  // namespace

// ---- syncing -----------------------------------------------------------------------------------------

void GrowingPartition::AskForSync() {
  since_sync_ = 0;
  pool_.RequestSync();
}

pool::SyncRequest GrowingPartition::BeforeSync(bool may_add) {
  pool::SyncRequest request{.read_at = root_.offset};
  if (unreported_ != 0 && may_add) {
    request.add_at = root_.offset + kRecordsOffset;
    request.delta = static_cast<uint64_t>(unreported_);
    unreported_ = 0;
  }
  return request;
}

void GrowingPartition::AfterSync(std::span<const std::byte, pool::kLine> line) {
  RootLine read;
  std::memcpy(&read, line.data(), sizeof read);
  Learn(read);
}

void GrowingPartition::Learn(const RootLine& line) {
  records_ = line.records;
  if (line.state.Progress() >= seen_.Progress()) seen_ = line.state;
  if (seen_.Progress() > directory_.Progress()) stale_ = true;
  if (directory_.version == 0) return;
  SetSyncFrequency();
  const bool may_grow = options_.grows && !directory_.announced && !pool_.read_only() &&
                        directory_.version < options_.most_version;
  wants_resize_ = may_grow && (growth_requested_ || IsFull());
}

bool GrowingPartition::IsFull() const {
  const uint64_t total = records();
  return total > 0 && total >= no_room_below_ &&
         Load(total) >= options_.max_load - options_.head_start * options_.max_load;
}

double GrowingPartition::Load(uint64_t records) const {
  return static_cast<double>(records) / static_cast<double>(Capacity(directory_.version));
}

// The paper's adaptive frequency, shared out among the clients: together they add at most the share alpha of
// what is left between two syncs, however many they are.
void GrowingPartition::SetSyncFrequency() {
  const auto capacity = static_cast<double>(Capacity(directory_.version));
  const double clients = pool_.live_clients(node());
  const double left = options_.max_load - Load(records_);
  const double share = directory_.announced || left < 0 ? kGraceShare : options_.alpha * left;
  sync_every_ = std::clamp(static_cast<uint64_t>(capacity * share / clients), kSyncAtMostEvery,
                           directory_.announced ? kGraceSyncAtLeastEvery : kSyncAtLeastEvery);
}

// ---- learning ----------------------------------------------------------------------------------------

Task<Done> GrowingPartition::CatchUp(Op& op) {
  if (missed_ != made_up_for_) {
    const uint64_t missed = missed_;
    co_await Refresh(op);
    made_up_for_ = std::max(made_up_for_, missed);
  }
  if (stale_) co_await ReadDirectory(op);
  if (may_activate_) co_await Activate(op);
  if (wants_resize_ && !resizing_) co_await Resize(op);
  co_return Done{};
}

Status GrowingPartition::CheckState(StateWord found, uint32_t progress) const {
  if (found.is_sound() && found.Progress() >= progress) return OkStatus();
  return BadRoot(options_.engine, root_, "has a state that cannot be");
}

Task<Done> GrowingPartition::Refresh(Op& op) {
  const uint32_t known = directory_.Progress();
  const RootLine line = co_await op.InOrder(ForMaintenance(Read<RootLine>(root_)));
  const Status checked = CheckState(line.state, known);
  if (!checked.ok()) co_return checked.error();
  Learn(line);
  if (stale_) co_await ReadDirectory(op);
  co_return Done{};
}

// The state was READ by an earlier trip, so this one finds every segment that it speaks of. A state that is
// newer still is not taken from here: its segment may not be in the lines that were sampled first.
Task<Done> GrowingPartition::ReadDirectory(Op& op) {
  if (seen_.version() == 0) {
    const RootLine line = co_await op.InOrder(ForMaintenance(Read<RootLine>(root_)));
    Learn(line);
  }
  StateWord state = seen_;
  const Status checked = CheckState(state, 0);
  if (!checked.ok()) co_return checked.error();
  const Root root = co_await op.InOrder(ForMaintenance(Read<Root>(root_)));
  if (Mutant(kit::kStateOfSameRead)) state = root.line.state;
  Directory read;
  read.version = state.version();
  read.announced = state.phase() == Phase::kAnnounced;
  read.newest = read.version + (read.announced ? state.steps() : 0);
  if (read.newest > options_.most_version || read.newest > read.version + options_.most_steps)
    co_return BadRoot(options_.engine, root_, "has a version that cannot be");
  for (size_t segment = 0; segment < read.newest; ++segment) {
    const uint64_t offset = root.segments[segment];
    if (offset == 0 || offset % pool::kLine != 0)
      co_return BadRoot(options_.engine, root_, "names a segment that cannot be");
    read.bases[segment] = offset;
  }
  // Other operations of this client may have learned more meanwhile.
  if (read.Progress() < directory_.Progress()) co_return Done{};
  const bool has_grown = read.version > directory_.version && directory_.version != 0;
  directory_ = read;
  if (has_grown) HasGrown();
  stale_ = seen_.Progress() > state.Progress();
  wants_resize_ = growth_requested_ = false;
  SetSyncFrequency();
  if (directory_.announced) AskForGrace();
  co_return Done{};
}

// ---- resizing ----------------------------------------------------------------------------------------

bool GrowingPartition::RequestGrowth() {
  if (pool_.read_only() || !options_.grows) return false;
  if (directory_.announced || resizing_) return true;
  if (directory_.version >= options_.most_version) return false;
  growth_requested_ = wants_resize_ = true;
  return true;
}

// Every client that sees an announcement waits for its grace; the first whose wait is over makes it count. So
// the death of a client does not stop a resize.
void GrowingPartition::AskForGrace() {
  if (grace_asked_for_ == directory_.newest || pool_.read_only()) return;
  grace_asked_for_ = directory_.newest;
  may_activate_ = Mutant(kit::kSplitBeforeGrace);
  pool_.AfterGrace(node(), [weak = weak_from_this(), version = grace_asked_for_] {
    const std::shared_ptr<GrowingPartition> partition = weak.lock();
    if (partition != nullptr && partition->grace_asked_for_ == version) partition->may_activate_ = true;
  });
  pool_.RequestSync();
}

// INVARIANT growth/1: AfterGrace has called, so every operation in flight began when its client had read the
// announcement.
Task<Done> GrowingPartition::Activate(Op& op) {
  may_activate_ = false;
  if (!directory_.announced || grace_asked_for_ != directory_.newest) co_return Done{};
  const StateWord announced =
      StateWord::Announced(directory_.version, directory_.newest - directory_.version);
  const StateWord steady = StateWord::Steady(directory_.newest);
  auto [old, line] = co_await op.InOrder(ForMaintenance(Cas(root_, announced.word(), steady.word())),
                                         ForMaintenance(Read<RootLine>(root_)));
  const bool mine = old == announced.word();
  const Status checked = CheckState(StateWord(old), mine ? announced.Progress() : steady.Progress());
  if (!checked.ok()) co_return checked.error();
  Learn(line);
  if (stale_) co_await ReadDirectory(op);
  co_return Done{};
}

Task<Done> GrowingPartition::Resize(Op& op) {
  const pool::ScopedFlag busy(resizing_);
  const bool requested = growth_requested_;
  wants_resize_ = growth_requested_ = false;
  const uint32_t version = directory_.version;
  const bool mine = co_await TakePreparation(op);
  if (!mine) {
    // The table may have grown already: an operation that waits for that has to know.
    if (requested) co_await Refresh(op);
    co_return Done{};
  }

  const StateWord preparing = StateWord::Preparing(version, pool_.member(node()).self());
  std::vector<FarAddr> made;
  const uint32_t steps = StepsToGo();
  const bool room = co_await MakeSegments(op, steps, made);
  if (!room) {
    // The operation that wanted to write goes on: the table becomes fuller.
    ++failed_growths_;
    no_room_below_ = records_ + records_ / 16 + 1;
    co_await op.InOrder(ForMaintenance(Cas(root_, preparing.word(), StateWord::Steady(version).word())));
    co_return Done{};
  }
  // WRITE, CAS keep their order: a client that reads the announcement finds the segments.
  std::vector<uint64_t> offsets;
  for (const FarAddr& segment : made) offsets.push_back(segment.offset);
  const FarAddr slots = root_ + kDirectoryOffset + version * sizeof(uint64_t);
  if (Mutant(kit::kDirectoryWrittenLate)) {
    const StateWord announced = StateWord::Announced(version, static_cast<uint32_t>(made.size()));
    co_await op.InOrder(Cas(root_, preparing.word(), announced.word()));
    co_await op.InOrder(Write(slots, std::as_bytes(std::span(offsets))));
    co_await Refresh(op);
    co_return Done{};
  }
  auto [written, old, line] = co_await op.InOrder(
      ForMaintenance(Write(slots, std::as_bytes(std::span(offsets)))),
      ForMaintenance(Cas(root_, preparing.word(),
                         StateWord::Announced(version, static_cast<uint32_t>(made.size())).word())),
      ForMaintenance(Read<RootLine>(root_)));
  if (old != preparing.word()) {
    co_return Error(ErrorCode::kFenced,
                    "a resize was taken from this client, which was taken for dead; reconnect");
  }
  Learn(line);
  if (stale_) co_await ReadDirectory(op);
  co_return Done{};
}

// One, as a rule. But a resize takes a grace period, in which every client finishes what it does and syncs; a
// table that is small for its clients would spend its time with resizes, and they with waiting for each
// other's locks.
uint32_t GrowingPartition::StepsToGo() const {
  if (options_.burst == 0) return 1;
  const auto known = static_cast<uint64_t>(std::max<int64_t>(static_cast<int64_t>(records_), 0));
  const uint64_t expected = known + options_.burst * pool_.live_clients(node());
  uint32_t version = directory_.version + 1;
  const uint32_t last = std::min(options_.most_version, directory_.version + options_.most_steps);
  while (version < last &&
         options_.max_load * static_cast<double>(Capacity(version)) < static_cast<double>(expected)) {
    ++version;
  }
  return version - directory_.version;
}

Task<bool> GrowingPartition::MakeSegments(Op& op, uint32_t steps, std::vector<FarAddr>& made) {
  for (uint32_t step = 0; step < steps; ++step) {
    const Result<FarAddr> segment = co_await MakeSegment(op, directory_.version + step).Outcome();
    if (!segment.ok() && fabric::EndsClient(segment.error())) co_return segment.error();
    if (!segment.ok()) break;  // as far as there is room
    made.push_back(*segment);
  }
  co_return !made.empty();
}

// True if this client is now the one that prepares. One that died while it prepared is followed by another;
// what it had allocated is not reachable, and is swept.
Task<bool> GrowingPartition::TakePreparation(Op& op) {
  const uint32_t version = directory_.version;
  const uint64_t steady = StateWord::Steady(version).word();
  pool::Membership& member = pool_.member(node());
  const uint64_t mine = StateWord::Preparing(version, member.self()).word();
  const uint64_t old = co_await op.InOrder(ForMaintenance(Cas(root_, steady, mine)));
  if (old == steady) co_return true;
  const StateWord found(old);
  const Status checked = CheckState(found, StateWord::Steady(version).Progress());
  if (!checked.ok()) co_return checked.error();
  if (found.phase() != Phase::kPreparing || found.version() != version || found.owner() == member.self())
    co_return false;
  const pool::Standing standing = co_await member.StandingOf(op, found.owner());
  if (standing != pool::Standing::kGone || Mutant(kit::kPreparerNotFollowed)) co_return false;
  const uint64_t taken = co_await op.InOrder(ForMaintenance(Cas(root_, old, mine)));
  co_return taken == old;
}

// All zero: so the engine sees that nothing was moved there yet.
Task<FarAddr> GrowingPartition::MakeSegment(Op& op, size_t segment) {
  const uint64_t bytes = SegmentBytes(segment);
  const FarAddr made = co_await pool_.allocator(node()).Allocate(op, bytes);
  const std::vector<std::byte> zeros(std::min(bytes, kZeroedByATrip));
  for (uint64_t done = 0; done < bytes; done += zeros.size()) {
    const std::span<const std::byte> part(zeros.data(), std::min<uint64_t>(zeros.size(), bytes - done));
    co_await op.InOrder(ForMaintenance(Unreachable(Write(made + done, part))));
  }
  co_return made;
}

}  // namespace farside::index
