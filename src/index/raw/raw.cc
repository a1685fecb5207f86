#include "index/raw/raw.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "pool/catalog/placement.h"
#include "pool/memory/block.h"

namespace farside::index::raw {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForBlock;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;

namespace {

// Bytes for one operation, from the cache of coroutine frames: an allocation on the heap would be measured
// too.
class Scratch {
 public:
  explicit Scratch(uint64_t bytes) : bytes_(bytes), memory_(FrameCache::Allocate(bytes)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { FrameCache::Free(memory_, bytes_); }

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), bytes_}; }

 private:
  const uint64_t bytes_;
  void* const memory_;
};

// A block without a checksum, which a perfect index would not need.
void FillBlock(std::string_view key, std::string_view value, std::span<std::byte> block) {
  const pool::BlockHeader header{.marked_key_bytes = static_cast<uint32_t>(key.size()),
                                 .value_bytes = static_cast<uint32_t>(value.size()),
                                 .hash = 0,
                                 .checksum = 0};
  std::memcpy(block.data(), &header, sizeof header);
  std::byte* const end = std::copy_n(AsBytes(key).begin(), key.size(), block.data() + sizeof header);
  std::byte* const rest = std::copy_n(AsBytes(value).begin(), value.size(), end);
  std::fill(rest, block.data() + block.size(),
            std::byte{0});  // scratch memory holds what other operations left
}

// Whatever stands in the block, as far as it is one.
std::string_view ValueIn(std::span<const std::byte> block) {
  pool::BlockHeader header;
  std::memcpy(&header, block.data(), sizeof header);
  const uint64_t begin = std::min<uint64_t>(sizeof header + header.key_bytes(), block.size());
  return AsText(block.subspan(begin, std::min<uint64_t>(header.value_bytes, block.size() - begin)));
}

Error NotForUse() {
  return Error(ErrorCode::kUnsupported,
               "raw measures the fabric and remembers nothing; use another engine for this");
}

}  // namespace

Table::Table(const Options& options, pool::PoolClient& pool, std::vector<FarAddr> roots)
    : options_(options), pool_(pool), roots_(std::move(roots)) {
  for (const FarAddr& root : roots_) nodes_.push_back(root.node);
}

Table::Slot Table::SlotOf(std::string_view key) const {
  const uint64_t hash = Hash64(AsBytes(key));
  const FarAddr root = roots_[pool::PickNode(hash, nodes_)];
  const uint64_t slot = hash % options_.records;
  return {.bucket = root + slot * options_.bucket_bytes,
          .block = root + options_.records * options_.bucket_bytes + slot * options_.block_bytes};
}

Task<bool> Table::Get(Op& op, std::string_view key, std::string& value) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  const Slot slot = SlotOf(key);
  const Scratch bucket(options_.bucket_bytes);
  const Scratch block(options_.block_bytes);
  if (options_.trips == 1) {
    co_await op.InOrder(Read(slot.bucket, bucket.bytes()), ForBlock(Read(slot.block, block.bytes())));
  } else {
    co_await op.InOrder(Read(slot.bucket, bucket.bytes()));
    co_await op.InOrder(ForBlock(Read(slot.block, block.bytes())));
  }
  value.assign(ValueIn(block.bytes()));
  op.End(OpKind::kSearch, OpOutcome::kDone);
  co_return true;
}

Task<uint64_t> Table::WriteAndRead(Op& op, Slot slot, std::string_view key, std::string_view value) {
  const uint64_t bytes = pool::BlockBytes(key.size(), value.size());
  if (bytes > options_.block_bytes) {
    co_return Error(ErrorCode::kInvalidArgument,
                    fmt::format("this key and value take {} bytes, and the blocks of this raw table have {}; "
                                "make it with block={}",
                                bytes, options_.block_bytes, bytes));
  }
  const Scratch bucket(options_.bucket_bytes);
  const Scratch block(options_.block_bytes);
  FillBlock(key, value, block.bytes());
  // No client could reach the new block of a real index yet.
  co_await op.InOrder(ForBlock(Unreachable(Write(slot.block, block.bytes()))),
                      Read(slot.bucket, bucket.bytes()));
  co_return LoadU64(bucket.bytes().data());
}

Task<Done> Table::ReadBlock(Op& op, Slot slot) {
  const Scratch block(options_.block_bytes);
  co_await op.InOrder(ForBlock(Read(slot.block, block.bytes())));
  co_return Done{};
}

Task<bool> Table::Insert(Op& op, std::string_view key, std::string_view value) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  const Slot slot = SlotOf(key);
  const uint64_t word = co_await WriteAndRead(op, slot, key, value);
  co_await op.InOrder(Cas(slot.bucket, word, word + 1));
  op.End(OpKind::kInsert, OpOutcome::kDone);
  co_return true;
}

Task<bool> Table::Update(Op& op, std::string_view key, std::string_view value) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  const Slot slot = SlotOf(key);
  const uint64_t word = co_await WriteAndRead(op, slot, key, value);
  co_await ReadBlock(op, slot);
  co_await op.InOrder(Cas(slot.bucket, word, word + 1));
  op.End(OpKind::kUpdate, OpOutcome::kDone);
  co_return true;
}

Task<PutOutcome> Table::Put(Op& op, std::string_view key, std::string_view value) {
  co_await Update(op, key, value);
  co_return PutOutcome::kNotTold;
}

Task<bool> Table::Delete(Op& op, std::string_view key) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  const Slot slot = SlotOf(key);
  const Scratch bucket(options_.bucket_bytes);
  co_await op.InOrder(Read(slot.bucket, bucket.bytes()));
  co_await ReadBlock(op, slot);
  const uint64_t word = LoadU64(bucket.bytes().data());
  co_await op.InOrder(Cas(slot.bucket, word, word + 1));
  op.End(OpKind::kDelete, OpOutcome::kDone);
  co_return true;
}

Task<bool> Table::CompareAndSet(Op&, std::string_view, std::string_view, std::string_view) {
  co_return NotForUse();
}
Task<uint64_t> Table::Increment(Op&, std::string_view, uint64_t) { co_return NotForUse(); }

Task<bool> Table::Next(Op& op, Cursor&, std::vector<Record>&) {
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return false;
}

Task<TableStats> Table::Stats(Op& op) {
  TableStats stats;
  stats.slots = roots_.size() * options_.records;
  stats.index_bytes = roots_.size() * options_.records * options_.bucket_bytes;
  stats.block_bytes = roots_.size() * options_.records * options_.block_bytes;
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return stats;
}

// Everything was allocated with the roots.
Task<Done> Table::Walk(Op& op, pool::Reach& reach) {
  for (const FarAddr& root : roots_) reach.Mark(root, options_.RootBytes());
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// Any bytes are as good as any others.
Task<Done> Table::Verify(Op& op) {
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

}  // namespace farside::index::raw
