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
using fabric::Read;

namespace {

// A READ that shows the same head this often, and never the image that the head names, has not met a writer:
// the bucket is damaged (reference/1, reference/4).
constexpr int kReadsUntilDamaged = 4;

// For the mutant that reads images before they count.
const Image* NewestImage(const Bucket& bucket) {
  const Image& other = bucket.images[1 - bucket.head.image()];
  if (other.version > bucket.head.version() && IsSealed(other, other.version)) return &other;
  return CurrentImage(bucket);
}

}  // namespace

// One trip, unless writers keep coming between its lines: the head and the image are sampled by one READ, and
// the image proves that it is the one the head names.
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
Task<std::optional<Table::Match>> Table::FindKey(Op& op, NodeId node, const Image& image, uint64_t hash,
                                                 std::string_view key) {
  for (auto entry = FindCandidate(image, hash, 0); entry.has_value();
       entry = FindCandidate(image, hash, *entry + 1)) {
    Match match = co_await ReadMatch(op, node, image, *entry);
    if (match.record.key == key) co_return std::move(match);
  }
  co_return std::nullopt;
}

// Two trips: the bucket and the block. The search takes effect when the head is sampled; the pin keeps what
// the head's image points to.
Task<bool> Table::TrySearch(SearchContext& context) {
  const Bucket bucket = co_await ReadBucket(context.op, context.bucket);  // trip 1
  const Image image = Mutant(kNewestImageWins) ? *NewestImage(bucket) : *CurrentImage(bucket);
  const std::optional<Match> match =
      co_await FindKey(context.op, context.node, image, context.hash, context.key);  // trip 2
  if (match.has_value()) context.value.assign(match->record.value);
  co_return match.has_value();
}

}  // namespace farside::index::reference
