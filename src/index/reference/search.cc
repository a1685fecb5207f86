// Finding a key: the bucket, then the block.
#include "index/kit/block_buffer.h"
#include "index/reference/errors.h"
#include "index/reference/mutants.h"
#include "index/reference/table.h"
#include "pool/memory/block.h"

namespace farside::index::reference {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Read;

namespace {

// A READ that shows the same head this often, and never the image that the head names, has not met a writer: the bucket is
// damaged (reference/1, reference/4).
constexpr int kReadsUntilDamaged = 4;

// For the mutant that reads images before they count.
const Image* NewestImage(const Bucket& bucket) {
  const Image& other = bucket.images[1 - bucket.head.image()];
  if (other.version > bucket.head.version() && IsSealed(other, other.version)) return &other;
  return CurrentImage(bucket);
}

}  // namespace

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

Task<Table::Match> Table::ReadMatch(Op& op, NodeId node, const Image& image, size_t entry) {
  const Entry found = image.entries[entry];
  BlockBuffer block;
  co_await ReadBlock(op, FarAddr(node, found.offset()), found.bytes(), block);
  const Result<pool::BlockView> view = pool::DecodeBlock(block.bytes());
  if (!view.ok()) co_return view.error();
  co_return Match{.entry = entry,
                  .block_bytes = block.bytes().size(),
                  .record = {.key = std::string(view->key), .value = std::string(view->value)}};
}

// Reads the blocks of the entries that may be the key's, one after the other; nearly always one.
Task<std::optional<Table::Match>> Table::FindKey(Op& op, const Image& image, KeyHome home,
                                                 std::string_view key) {
  for (auto entry = FindCandidate(image, home.hash, 0); entry.has_value();
       entry = FindCandidate(image, home.hash, *entry + 1)) {
    Match match = co_await ReadMatch(op, home.bucket.node, image, *entry);
    if (match.record.key == key) co_return std::move(match);
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
  if (match.has_value()) value.assign(match->record.value);
  op.End(OpKind::kSearch, match.has_value() ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return match.has_value();
}

}  // namespace farside::index::reference
