#include "index/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>

#include "base/bytes.h"
#include "base/hash.h"
#include "fabric/op.h"
#include "index/reference/mutants.h"

namespace farside::index::reference {

using fabric::Cas;
using fabric::ClientId;
using fabric::FarAddr;
using fabric::MaskedCas;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Order;
using fabric::Read;
using fabric::Write;
using fabric::WriteObject;

namespace {

// A READ that shows the same head this often, and never the image that goes with it, has not met a
// writer: the bucket is damaged (reference/1, reference/4).
constexpr int kReadsUntilDamaged = 4;
// Attempts of one operation; each of them met a change by somebody else, or waited for a pause.
constexpr int kMostAttempts = 10'000;

FarAddr ImageAt(FarAddr bucket, size_t image) { return bucket + kImagesOffset + image * sizeof(Image); }

Error Damaged(FarAddr at) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the bucket at {:#x} names an image that is not complete; run a check of the pool", at.offset));
}

Error Contended() {
  return Error(ErrorCode::kContended, fmt::format("gave up after {} attempts; retry later", kMostAttempts));
}

// The image that counts, or null if it is not complete. An empty one if nothing was ever written.
const Image* CurrentImage(const Bucket& bucket) {
  static constexpr Image kNothing{};
  if (bucket.head.version() == 0) return &kNothing;
  const Image& image = bucket.images[bucket.head.image()];
  if (Mutant(kAcceptTornImage) || IsSealed(image, bucket.head.version())) return &image;
  return nullptr;
}

// For the mutant that reads images before they count.
const Image* NewestImage(const Bucket& bucket) {
  const Image& other = bucket.images[1 - bucket.head.image()];
  if (other.version > bucket.head.version() && IsSealed(other, other.version)) return &other;
  return CurrentImage(bucket);
}

std::optional<Error> CheckSizes(const Change& change) {
  if (change.key.size() > kMaxKeyBytes) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("the key has {} bytes; the reference table takes up to {}",
                                                          change.key.size(), kMaxKeyBytes));
  }
  if (change.value.size() > kMaxValueBytes) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("the value has {} bytes; the reference table takes up to {}",
                                                          change.value.size(), kMaxValueBytes));
  }
  return std::nullopt;
}

}  // namespace

FarAddr Table::BucketOf(std::string_view key) const {
  return FarAddr(NodeId{0}, Hash64(AsBytes(key)) % options_.buckets * sizeof(Bucket));
}

// One trip: the head and the image are sampled by one READ, and the image proves that it is the one the
// head names. The operation takes effect when the head is sampled.
Task<bool> Table::Get(Op& op, std::string_view key, std::string& value) {
  const FarAddr at = BucketOf(key);
  Head last;
  int same_head = 0;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const Bucket bucket = co_await op.InOrder(Read<Bucket>(at));  // trip 1
    const Image* image = CurrentImage(bucket);
    if (Mutant(kNewestImageWins)) image = NewestImage(bucket);
    if (image != nullptr) {
      const Entry* entry = Find(*image, key);
      if (entry != nullptr) value.assign(ValueOf(*entry));
      op.End(OpKind::kSearch, entry != nullptr ? OpOutcome::kDone : OpOutcome::kRefused);
      co_return entry != nullptr;
    }
    // A writer came between the lines of the READ. Then the head has moved on too.
    same_head = bucket.head.version() == last.version() ? same_head + 1 : 1;
    last = bucket.head;
    if (same_head == kReadsUntilDamaged) co_return Damaged(at);
    op.CountRetry();
  }
  co_return Contended();
}

// Two trips: lock and read, write and commit.
Task<Changed> Table::Modify(Op& op, Change change) {
  if (std::optional<Error> bad = CheckSizes(change)) co_return std::move(*bad);
  if (Number(client_.id()) > Head::Owner::kMax) {
    co_return Error(ErrorCode::kUnsupported, fmt::format("the reference table cannot name a client with the id {}; open the "
                                                         "fabric anew",
                                                         Number(client_.id())));
  }
  const FarAddr at = BucketOf(change.key);
  Bucket before;
  if (Mutant(kReadBeforeLock)) before = co_await op.InOrder(Read<Bucket>(at));
  const Bucket bucket = co_await Lock(op, at);  // trip 1
  const Image* current = CurrentImage(Mutant(kReadBeforeLock) ? before : bucket);
  if (current == nullptr) {
    co_await Unlock(op, at, bucket.head);
    co_return Damaged(at);
  }
  Image image = *current;
  const Result<Changed> changed = Apply(change, image);
  // INVARIANT reference/4: also a refused change commits, with the image as it was. Every tenure of the lock has a
  // version of its own, so a waiter that sees the same word again knows that it is the same tenure.
  co_await Commit(op, at, bucket.head, image);  // trip 2
  co_return changed;
}

// Returns the bucket as it is under the lock, with this client as owner in its head.
Task<Bucket> Table::Lock(Op& op, FarAddr at) {
  const uint32_t me = Number(client_.id());
  Head waited_for;
  Nanos since{0};
  Nanos pause = options_.backoff;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    // CAS, READ keep their order, so the bucket is read under the lock if the CAS took it.
    auto [word, bucket] = co_await op.InOrder(
        MaskedCas(at, Head().word(), 0, Head::Owner::kMask, me, Head::Owner::kMask), Read<Bucket>(at));
    const Head found(word);
    if (!found.locked()) {
      bucket.head = found.WithOwner(me);
      co_return bucket;
    }

    // INVARIANT reference/2: held by somebody else. The same word again means the same tenure (reference/4); one that
    // lasts longer than the lease is ended by a takeover. Another operation of this client is waited for.
    op.CountRetry();
    if (found != waited_for) {
      waited_for = found;
      since = client_.Now();
      pause = options_.backoff;
    } else if (client_.Now() - since >= options_.lease && found.owner() != me && !Mutant(kNoTakeover)) {
      const std::optional<Bucket> taken = co_await TakeOver(op, at, found);
      if (taken.has_value()) co_return *taken;
    }
    co_await op.Pause(pause);
    pause = std::min(pause * 2, options_.lease);
  }
  co_return Contended();
}

// Takes the lock from an owner that seems dead. Nothing: somebody else was faster, perhaps another operation of this
// very client.
Task<std::optional<Bucket>> Table::TakeOver(Op& op, FarAddr at, Head held) {
  // INVARIANT reference/2: the owner may only be slow, and its last trip on the way. Fenced, nothing of it can
  // land any more, so its half-written image stays what it is: an image that does not count.
  if (!Mutant(kTakeoverWithoutFence)) co_await FenceEverywhere(op, static_cast<ClientId>(held.owner()));
  const Head mine = held.TakenOverBy(Number(client_.id()));
  auto [word, bucket] = co_await op.InOrder(Cas(at, held.word(), mine.word()), Read<Bucket>(at));
  if (word != held.word()) co_return std::nullopt;
  bucket.head = mine;
  if (held.takeovers() == Head::Takeovers::kMax) {
    // There is no further version to skip to (reference/5), so the image that may be there goes first, by a trip of its
    // own: no READ of a bucket lasts as long as two trips.
    const Image nothing{};
    co_await op.InOrder(WriteObject(ImageAt(at, 1 - held.image()), nothing));
  }
  co_return bucket;
}

// Gives the lock of a damaged bucket back.
Task<Done> Table::Unlock(Op& op, FarAddr at, Head held) {
  co_await op.InOrder(Cas(at, held.word(), held.WithOwner(0).word()));
  co_return Done{};
}

// INVARIANT reference/1 and reference/3: WRITE, CAS keep their order, so the image is complete when the head turns to
// it. If this client dies before the CAS, the image does not count and the next owner overwrites it.
Task<Done> Table::Commit(Op& op, FarAddr at, Head held, Image image) {
  Head committed = held.Committed();
  size_t target = committed.image();
  if (Mutant(kVersionNotRaised)) committed = Head(Head::Version::Set(committed.word(), std::max(1u, held.version())));
  if (Mutant(kWriteCurrentImage)) {
    target = held.image();
    committed = Head(Head::Image::Set(committed.word(), target));
  }
  Seal(image, committed.version());
  if (Mutant(kUnlockByWrite)) {
    const uint64_t free = committed.word();
    co_await op.InOrder(WriteObject(ImageAt(at, target), image), WriteObject(at, free));
    co_return Done{};
  }
  const Order order = Mutant(kCommitTogetherWithWrite) ? Order::kTogether : Order::kInOrder;
  auto outcome = co_await fabric::TripAwaiter(op, order, WriteObject(ImageAt(at, target), image),
                                              Cas(at, held.word(), committed.word()))
                     .Outcome();
  if (!outcome.ok()) {
    if (Mutant(kUnknownReportedAsRefused)) co_return Error(ErrorCode::kUnavailable, "nothing was changed");
    co_return outcome.error();
  }
  if (std::get<1>(*outcome) != held.word()) {
    co_return Error(ErrorCode::kFenced, "the lock was taken from this client, which was taken for dead; nothing was "
                                        "changed; reconnect");
  }
  co_return Done{};
}

Task<bool> Table::Put(Op& op, std::string_view key, std::string_view value) {
  Change change(ChangeKind::kPut, key);
  change.value = value;
  const Changed changed = co_await Modify(op, change);
  op.End(changed.was_present ? OpKind::kUpdate : OpKind::kInsert, OpOutcome::kDone);
  co_return !changed.was_present;
}

Task<bool> Table::Insert(Op& op, std::string_view key, std::string_view value) {
  Change change(ChangeKind::kInsert, key);
  change.value = value;
  const Changed changed = co_await Modify(op, change);
  op.End(OpKind::kInsert, changed.applied ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return changed.applied;
}

Task<bool> Table::Update(Op& op, std::string_view key, std::string_view value) {
  Change change(ChangeKind::kUpdate, key);
  change.value = value;
  const Changed changed = co_await Modify(op, change);
  op.End(OpKind::kUpdate, changed.applied ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return changed.applied;
}

Task<bool> Table::Delete(Op& op, std::string_view key) {
  const Changed changed = co_await Modify(op, Change(ChangeKind::kDelete, key));
  op.End(OpKind::kDelete, changed.applied ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return changed.applied;
}

Task<bool> Table::CompareAndSet(Op& op, std::string_view key, std::string_view expected, std::string_view desired) {
  Change change(ChangeKind::kCompareAndSet, key);
  change.expected = expected;
  change.value = desired;
  const Changed changed = co_await Modify(op, change);
  op.End(OpKind::kUpdate, changed.applied ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return changed.applied;
}

Task<uint64_t> Table::Increment(Op& op, std::string_view key, uint64_t delta) {
  Change change(ChangeKind::kIncrement, key);
  change.delta = delta;
  const Changed changed = co_await Modify(op, change);
  op.End(changed.was_present ? OpKind::kUpdate : OpKind::kInsert, OpOutcome::kDone);
  co_return changed.counter;
}

Task<Done> Table::Verify(Op& op) {
  for (uint64_t i = 0; i < options_.buckets; ++i) {
    const FarAddr at(NodeId{0}, i * sizeof(Bucket));
    const Bucket bucket = co_await op.InOrder(Read<Bucket>(at));
    const Image* image = CurrentImage(bucket);
    if (image == nullptr) co_return Damaged(at);
    for (const Entry& entry : image->entries) {
      if (entry.state > EntryState::kUsed || entry.key_bytes > kMaxKeyBytes || entry.value_bytes > kMaxValueBytes) {
        co_return Damaged(at);
      }
      if (entry.state == EntryState::kUsed && (BucketOf(KeyOf(entry)) != at || Find(*image, KeyOf(entry)) != &entry)) {
        co_return Error(ErrorCode::kCorrupt, fmt::format("the key \"{}\" stands twice or in a bucket that is not its own",
                                                         Escape(KeyOf(entry))));
      }
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// ---- engine ------------------------------------------------------------------------------------------

// Fresh memory is zero, and that is an empty table already.
Task<Done> ReferenceEngine::Format(Op& op) {
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

std::unique_ptr<Index> ReferenceEngine::Open(fabric::Client& client) {
  return std::make_unique<Table>(options_, client);
}

std::string ReferenceEngine::Describe(FarAddr at) const {
  const uint64_t bucket = at.offset / sizeof(Bucket);
  const uint64_t inside = at.offset % sizeof(Bucket);
  if (at.node != NodeId{0} || bucket >= options_.buckets) return "";
  if (inside < sizeof(Head)) return fmt::format("bucket {} head", bucket);
  if (inside < kImagesOffset || inside >= kImagesOffset + 2 * sizeof(Image)) return fmt::format("bucket {}", bucket);
  return fmt::format("bucket {} image {}+{}", bucket, (inside - kImagesOffset) / sizeof(Image),
                     (inside - kImagesOffset) % sizeof(Image));
}

Result<Options> Options::Parse(const OptionMap& options) {
  Options parsed;
  for (const auto& [key, text] : options) {
    uint64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc() || end != text.data() + text.size() || number == 0 || number > 1'000'000) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("option {}={}: expected a number from 1 to 1000000", Escape(key), Escape(text)));
    }
    if (key == "buckets") {
      parsed.buckets = number;
    } else if (key == "lease_us") {
      parsed.lease = std::chrono::microseconds(number);
    } else if (key == "backoff_us") {
      parsed.backoff = std::chrono::microseconds(number);
    } else {
      return Error(ErrorCode::kInvalidArgument, fmt::format("the reference table has no option '{}'; it has buckets, "
                                                            "lease_us, backoff_us",
                                                            Escape(key)));
    }
  }
  return parsed;
}

Result<std::unique_ptr<Engine>> MakeReferenceEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::unique_ptr<Engine>(std::make_unique<ReferenceEngine>(*parsed));
}

}  // namespace farside::index::reference
