#include "index/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/bytes.h"
#include "base/hash.h"
#include "fabric/op.h"
#include "index/kit/options.h"
#include "index/kit/zeroed_roots.h"
#include "index/reference/mutants.h"
#include "pool/catalog/placement.h"
#include "pool/memory/block.h"

namespace farside::index::reference {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForBlock;
using fabric::MaskedCas;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Order;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;
using pool::Owner;
using pool::Standing;

namespace {

// A READ that shows the same head this often, and never the image that goes with it, has not met a
// writer: the bucket is damaged (reference/1, reference/4).
constexpr int kReadsUntilDamaged = 4;
// Attempts of one operation; each of them met a change by somebody else, or waited for a pause.
constexpr int kMostAttempts = 1000;
constexpr int kPausesPerLease = 16;

FarAddr ImageAt(FarAddr bucket, size_t image) { return bucket + kImagesOffset + image * sizeof(Image); }

// Room for the buckets, wherever the block begins.
uint64_t RootBytes(uint64_t buckets) { return (buckets + 1) * sizeof(Bucket); }
FarAddr FirstBucket(FarAddr root) { return FarAddr(root.node, pool::RoundUp(root.offset, sizeof(Bucket))); }

Error Damaged(FarAddr at) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the bucket at {:#x} of node {} names an image that is not complete; run "
                           "farside fsck",
                           at.offset, fabric::Index(at.node)));
}

Error Contended() {
  return Error(ErrorCode::kContended, fmt::format("gave up after {} attempts; retry later", kMostAttempts));
}

// For the mutant that reads images before they count.
const Image* NewestImage(const Bucket& bucket) {
  const Image& other = bucket.images[1 - bucket.head.image()];
  if (other.version > bucket.head.version() && IsSealed(other, other.version)) return &other;
  return CurrentImage(bucket);
}

constexpr auto kRules = std::to_array<OptionRule<Options>>({
    {"buckets",
     [](Options& o, const OptionText& given) { return Set(o.buckets, given.Number(1, 1'000'000)); }},
    {"backoff_us",
     [](Options& o, const OptionText& given) { return Set(o.backoff, given.Micros(1, 1'000'000)); }},
});

}  // namespace

Table::Table(const Options& options, pool::PoolClient& pool, std::vector<FarAddr> roots)
    : options_(options), pool_(pool), roots_(std::move(roots)) {
  for (const FarAddr& root : roots_) nodes_.push_back(root.node);
}

FarAddr Table::BucketAt(size_t part, uint64_t bucket) const {
  return FirstBucket(roots_[part]) + bucket * sizeof(Bucket);
}

Table::KeyHome Table::HomeOf(std::string_view key) const {
  const uint64_t hash = Hash64(AsBytes(key));
  return {.bucket = BucketAt(pool::PickNode(hash, nodes_), hash % options_.buckets), .hash = hash};
}

// One trip, unless writers keep coming between its lines: the head and the image are sampled by one READ, and the
// image proves that it is the one the head names.
Task<Bucket> Table::ReadBucket(Op& op, FarAddr at) {
  Head last;
  int same_head = 0;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const Bucket bucket = co_await op.InOrder(Read<Bucket>(at));
    if (CurrentImage(bucket) != nullptr) co_return bucket;
    // A writer came between the lines of the READ. Then the head has moved on too.
    same_head = bucket.head.version() == last.version() ? same_head + 1 : 1;
    last = bucket.head;
    if (same_head == kReadsUntilDamaged) co_return Damaged(at);
    op.CountRetry();
  }
  co_return Contended();
}

Task<std::vector<std::byte>> Table::ReadBlock(Op& op, NodeId node, Entry entry) {
  const FarAddr at(node, entry.offset());
  uint64_t bytes = entry.bytes();
  if (bytes == 0) {
    // Too large for its size to stand in the entry.
    std::array<std::byte, pool::kLine> line;
    co_await op.InOrder(ForBlock(Read(at, line)));
    const Result<uint64_t> size = pool::BlockBytesFromHeader(line);
    if (!size.ok()) co_return size.error();
    bytes = *size;
  }
  std::vector<std::byte> block(bytes);
  co_await op.InOrder(ForBlock(Read(at, block)));
  co_return std::move(block);
}

// Reads the blocks of the entries that may be it, one after the other; nearly always one.
Task<std::optional<Table::Match>> Table::FindKey(Op& op, const Image& image, KeyHome home,
                                                 std::string_view key) {
  for (auto entry = FindCandidate(image, home.hash, 0); entry.has_value();
       entry = FindCandidate(image, home.hash, *entry + 1)) {
    std::vector<std::byte> block = co_await ReadBlock(op, home.bucket.node, image.entries[*entry]);
    const Result<pool::BlockView> view = pool::DecodeBlock(block);
    if (!view.ok()) co_return view.error();
    if (view->key != key) continue;
    const std::string_view value = view->value;
    co_return Match{.entry = *entry, .block = std::move(block), .value = value};
  }
  co_return std::nullopt;
}

// Two trips: the bucket and the block. The operation takes effect when the head is sampled; the pin keeps what it
// pointed to.
Task<bool> Table::Get(Op& op, std::string_view key, std::string& value) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  const KeyHome home = HomeOf(key);
  const Bucket bucket = co_await ReadBucket(op, home.bucket);  // trip 1
  const Image image = Mutant(kNewestImageWins) ? *NewestImage(bucket) : *CurrentImage(bucket);
  const std::optional<Match> match = co_await FindKey(op, image, home, key);  // trip 2
  if (match.has_value()) value.assign(match->value);
  op.End(OpKind::kSearch, match.has_value() ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return match.has_value();
}

// Two trips to insert (lock and read, write and commit), a third to compare the key of an entry that may be it.
Task<Changed> Table::Modify(Op& op, Change change) {
  const Status fits = pool::CheckBlockSizes(change.key, change.value);
  if (!fits.ok()) co_return fits.error();
  const pool::PoolClient::Pin pin = pool_.Begin();
  const KeyHome home = HomeOf(change.key);
  Bucket before;
  if (Mutant(kReadBeforeLock)) before = co_await ReadBucket(op, home.bucket);
  Bucket bucket = co_await Lock(op, home.bucket);  // trip 1
  if (Mutant(kReadBeforeLock)) bucket.images = before.images;
  if (Mutant(kReadBeforeLock)) bucket.head = before.head.WithOwner(bucket.head.owner());

  Result<Changed> changed = co_await ModifyLocked(op, change, home, bucket, pin.epoch(home.bucket.node))
                                .Outcome();  // trips 2 and 3
  const bool committed = changed.ok() && changed->applied;
  const bool connected = changed.ok() || (changed.error().code() != ErrorCode::kOutcomeUnknown &&
                                          changed.error().code() != ErrorCode::kFenced &&
                                          changed.error().code() != ErrorCode::kUnavailable);
  if (!committed && connected) co_await GiveBack(op, home.bucket, bucket);
  co_return changed;
}

// The lock is held. If it returns that nothing was applied, or an error, the lock is still held.
Task<Changed> Table::ModifyLocked(Op& op, const Change& change, KeyHome home, const Bucket& bucket,
                                  uint64_t birth) {
  const Image* current = CurrentImage(bucket);
  if (current == nullptr) co_return Damaged(home.bucket);
  Image image = *current;
  const std::optional<Match> match = co_await FindKey(op, image, home, change.key);
  std::optional<std::string_view> found;
  if (match.has_value()) found = match->value;
  const Result<Decision> decision = Decide(change, found);
  if (!decision.ok()) co_return decision.error();
  Changed changed{
      .was_present = match.has_value(), .applied = decision->applied, .counter = decision->counter};
  if (!decision->applied) co_return changed;

  pool::Allocator& allocator = pool_.allocator(home.bucket.node);
  const std::optional<size_t> target = match.has_value() ? std::optional(match->entry) : FindEmpty(image);
  if (!target.has_value()) {
    co_return Error(
        ErrorCode::kOutOfMemory,
        fmt::format("the bucket of this key is full ({} entries); make the table with more buckets",
                    kEntries));
  }
  const Entry replaced = image.entries[*target];
  FarAddr block_at(home.bucket.node, 0);
  std::vector<std::byte> block;
  image.entries[*target] = Entry();
  if (!decision->removes) {
    const std::string_view value = decision->Value(change);
    block.resize(pool::BlockBytes(change.key.size(), value.size()));
    block_at = co_await allocator.Allocate(op, block.size());
    pool::EncodeBlock(block, change.key, value, home.hash);
    image.entries[*target] = Entry(block_at.offset, block.size(), home.hash);
  }
  co_await Commit(op, home.bucket, bucket.head, image, block_at, std::move(block));
  // INVARIANT reference/5: this client's CAS took it out of the table.
  if (match.has_value())
    allocator.Retire(FarAddr(home.bucket.node, replaced.offset()), match->block.size(), birth);
  co_return changed;
}

// Returns the bucket as it is under the lock, with this client as owner in its head.
Task<Bucket> Table::Lock(Op& op, FarAddr at) {
  pool::Membership& member = pool_.member(at.node);
  const Owner me = member.self();
  const Nanos longest_pause = std::max(member.options().lease / kPausesPerLease, options_.backoff);
  Nanos pause = options_.backoff;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    // CAS, READ keep their order, so the bucket is read under the lock if the CAS took it.
    auto [word, bucket] = co_await op.InOrder(
        MaskedCas(at, Head().word(), 0, Head::OwnerBits::kMask, me.bits(), Head::OwnerBits::kMask),
        Read<Bucket>(at));
    const Head found(word);
    bucket.head = found.WithOwner(me);
    if (!found.locked()) co_return bucket;
    op.CountRetry();

    // INVARIANT reference/2: an owner that is gone has been fenced, and its half-written image stays what it is: an
    // image that does not count.
    const Standing standing = co_await member.StandingOf(op, found.owner());
    if (standing == Standing::kGone && !Mutant(kNoTakeover)) {
      const std::optional<Bucket> taken = co_await TakeOver(op, at, found);
      if (taken.has_value()) co_return *taken;
      continue;
    }
    co_await op.Pause(pause);
    pause = std::min(pause * 2, longest_pause);
  }
  co_return Contended();
}

// Takes the lock from an owner that is gone. Nothing: somebody else was faster, perhaps another operation of this
// very client.
Task<std::optional<Bucket>> Table::TakeOver(Op& op, FarAddr at, Head held) {
  const Head mine = held.TakenOverBy(pool_.member(at.node).self());
  auto [word, bucket] = co_await op.InOrder(Cas(at, held.word(), mine.word()), Read<Bucket>(at));
  if (word != held.word()) co_return std::nullopt;
  bucket.head = mine;
  if (held.takeovers() == Head::Takeovers::kMax) {
    // There is no further version to skip to (reference/4), so the image that may be there goes first, by a trip of its
    // own: no READ of a bucket lasts as long as two trips.
    const Image nothing{};
    co_await op.InOrder(WriteObject(ImageAt(at, 1 - held.image()), nothing));
  }
  co_return bucket;
}

// Gives the lock back with nothing changed. An owner that has taken it over commits what was there already: so the
// versions that its predecessors may have used are behind it.
Task<Done> Table::GiveBack(Op& op, FarAddr at, const Bucket& bucket) {
  const Image* current = CurrentImage(bucket);
  if (bucket.head.takeovers() > 0 && current != nullptr) {
    co_await Commit(op, at, bucket.head, *current, FarAddr(at.node, 0), {});
  } else {
    co_await Unlock(op, at, bucket.head);
  }
  co_return Done{};
}

Task<Done> Table::Unlock(Op& op, FarAddr at, Head held) {
  if (Mutant(kUnlockByWrite)) {
    const uint64_t free = held.WithOwner(Owner()).word();
    co_await op.InOrder(WriteObject(at, free));
    co_return Done{};
  }
  co_await op.InOrder(Cas(at, held.word(), held.WithOwner(Owner()).word()));
  co_return Done{};
}

// INVARIANTS reference/1, 3 and 5: WRITE, WRITE, CAS keep their order, so block and image are complete when the head
// turns to them. If this client dies before the CAS, the image does not count and the next owner overwrites it.
Task<Done> Table::Commit(Op& op, FarAddr at, Head held, Image image, FarAddr block_at,
                         std::vector<std::byte> block) {
  Head committed = held.Committed();
  size_t target = committed.image();
  if (Mutant(kVersionNotRaised))
    committed = Head(Head::Version::Set(committed.word(), std::max(1u, held.version())));
  if (Mutant(kWriteCurrentImage)) {
    target = held.image();
    committed = Head(Head::Image::Set(committed.word(), target));
  }
  Seal(image, committed.version());
  const Order order = Mutant(kCommitTogetherWithWrite) ? Order::kTogether : Order::kInOrder;
  auto outcome = co_await fabric::TripAwaiter(op, order, ForBlock(Unreachable(Write(block_at, block))),
                                              WriteObject(ImageAt(at, target), image),
                                              Cas(at, held.word(), committed.word()))
                     .Outcome();
  if (!outcome.ok()) {
    if (Mutant(kUnknownReportedAsRefused)) co_return Error(ErrorCode::kUnavailable, "nothing was changed");
    co_return outcome.error();
  }
  if (std::get<2>(*outcome) != held.word()) {
    co_return Error(ErrorCode::kFenced,
                    "the lock was taken from this client, which was taken for dead; nothing was "
                    "changed; reconnect");
  }
  co_return Done{};
}

// A page is a bucket, read as it was at one moment. position: node of the table, bucket.
Task<bool> Table::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  auto& [part, number, unused_2, unused_3] = cursor.position;
  bool appended = false;
  while (part < roots_.size() && !appended) {
    const Bucket bucket = co_await ReadBucket(op, BucketAt(part, number));
    const Image image = *CurrentImage(bucket);
    for (const Entry& entry : image.entries) {
      if (entry.empty()) continue;
      const std::vector<std::byte> block = co_await ReadBlock(op, roots_[part].node, entry);
      const Result<pool::BlockView> view = pool::DecodeBlock(block);
      if (!view.ok()) co_return view.error();
      page.push_back({.key = std::string(view->key), .value = std::string(view->value)});
      appended = true;
    }
    if (++number == options_.buckets) {
      number = 0;
      ++part;
    }
  }
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return appended;
}

Task<TableStats> Table::Stats(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  TableStats stats;
  stats.slots = roots_.size() * options_.buckets * kEntries;
  stats.index_bytes = roots_.size() * RootBytes(options_.buckets);
  for (size_t part = 0; part < roots_.size(); ++part) {
    for (uint64_t i = 0; i < options_.buckets; ++i) {
      const Bucket bucket = co_await ReadBucket(op, BucketAt(part, i));
      const Image image = *CurrentImage(bucket);
      for (const Entry& entry : image.entries) {
        if (entry.empty()) continue;
        ++stats.records;
        const std::vector<std::byte> block = co_await ReadBlock(op, roots_[part].node, entry);
        stats.block_bytes += block.size();
      }
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return stats;
}

// Entries never move to another bucket, and a bucket is read as it was at one moment: whatever is in the table
// throughout is marked.
Task<Done> Table::Walk(Op& op, pool::Reach& reach) {
  for (size_t part = 0; part < roots_.size(); ++part) {
    reach.Mark(roots_[part], RootBytes(options_.buckets));
    for (uint64_t i = 0; i < options_.buckets; ++i) {
      const Bucket bucket = co_await ReadBucket(op, BucketAt(part, i));
      const Image image = *CurrentImage(bucket);
      for (const Entry& entry : image.entries) {
        if (entry.empty()) continue;
        uint64_t bytes = entry.bytes();
        if (bytes == 0) {
          const std::vector<std::byte> block = co_await ReadBlock(op, roots_[part].node, entry);
          bytes = block.size();
        }
        reach.MarkBlock(FarAddr(roots_[part].node, entry.offset()), bytes);
      }
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::Verify(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  for (size_t part = 0; part < roots_.size(); ++part) {
    for (uint64_t i = 0; i < options_.buckets; ++i) {
      const FarAddr at = BucketAt(part, i);
      const Bucket bucket = co_await ReadBucket(op, at);
      const Image image = *CurrentImage(bucket);
      for (size_t e = 0; e < kEntries; ++e) {
        if (image.entries[e].empty()) continue;
        const std::vector<std::byte> block = co_await ReadBlock(op, at.node, image.entries[e]);
        const Result<pool::BlockView> view = pool::DecodeBlock(block);
        if (!view.ok()) co_return view.error();
        const KeyHome home = HomeOf(view->key);
        const std::optional<Match> first = co_await FindKey(op, image, home, view->key);
        if (home.bucket != at || !first.has_value() || first->entry != e) {
          co_return Error(ErrorCode::kCorrupt,
                          fmt::format("the key \"{}\" stands twice or in a bucket that is not its own",
                                      Escape(view->key)));
        }
      }
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// ---- engine ------------------------------------------------------------------------------------------

uint64_t ReferenceEngine::empty_bytes() const { return RootBytes(options_.buckets); }

OptionMap ReferenceEngine::recorded_options() const {
  return {{"buckets", std::to_string(options_.buckets)}};
}

Task<std::vector<FarAddr>> ReferenceEngine::Create(Op& op, pool::PoolClient& pool,
                                                   std::vector<NodeId> nodes) {
  return MakeZeroedRoots(op, pool, std::move(nodes), empty_bytes());
}

std::unique_ptr<Index> ReferenceEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, std::move(roots));
}

std::string ReferenceEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  for (const FarAddr& root : roots) {
    const FarAddr first = FirstBucket(root);
    if (at.node != root.node || at.offset < first.offset) continue;
    const uint64_t bucket = (at.offset - first.offset) / sizeof(Bucket);
    const uint64_t inside = (at.offset - first.offset) % sizeof(Bucket);
    if (bucket >= options_.buckets) continue;
    if (inside < sizeof(Head)) return fmt::format("bucket {} head", bucket);
    if (inside < kImagesOffset || inside >= kImagesOffset + sizeof(Bucket::images))
      return fmt::format("bucket {}", bucket);
    return fmt::format("bucket {} image {}+{}", bucket, (inside - kImagesOffset) / sizeof(Image),
                       (inside - kImagesOffset) % sizeof(Image));
  }
  return "";
}

Result<Options> Options::Parse(const OptionMap& options) {
  return ParseOptions("the reference table", kRules, options);
}

Result<std::shared_ptr<Engine>> MakeReferenceEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<ReferenceEngine>(*parsed));
}

}  // namespace farside::index::reference

template class farside::index::ChangingIndex<farside::index::reference::Table>;
