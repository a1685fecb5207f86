// Looking through the whole table: for cursors, for statistics, for the pool and for fsck.
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/kit/block_buffer.h"
#include "index/reference/table.h"
#include "pool/beats.h"

namespace farside::index::reference {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

// One trip for each record.
Task<std::vector<Table::Match>> Table::ReadRecords(Op& op, FarAddr at, const Image& image) {
  std::vector<Match> records;
  for (size_t entry = 0; entry < kEntries; ++entry) {
    if (image.entries[entry].empty()) continue;
    Match record = co_await ReadMatch(op, at.node, image, entry);
    records.push_back(std::move(record));
  }
  co_return std::move(records);
}

// A page is a bucket, read as it was at one moment. position: node of the table, bucket.
Task<bool> Table::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool().Begin();
  auto& [part, number, unused_2, unused_3] = cursor.position;
  bool appended = false;
  while (part < roots_.size() && !appended) {
    const FarAddr at = BucketAt(part, number);
    const Bucket bucket = co_await ReadBucket(op, at);
    const Image image = *CurrentImage(bucket);
    std::vector<Match> found = co_await ReadRecords(op, at, image);
    for (Match& match : found) page.push_back(std::move(match.record));
    appended = !found.empty();
    if (++number == options_.buckets) {
      number = 0;
      ++part;
    }
  }
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return appended;
}

Task<TableStats> Table::Stats(Op& op) {
  const pool::PoolClient::Pin pin = pool().Begin();
  TableStats stats;
  stats.slots = roots_.size() * options_.buckets * kEntries;
  stats.index_bytes = roots_.size() * RootBytes(options_.buckets);
  for (size_t part = 0; part < roots_.size(); ++part) {
    for (uint64_t i = 0; i < options_.buckets; ++i) {
      const FarAddr at = BucketAt(part, i);
      const Bucket bucket = co_await ReadBucket(op, at);
      const Image image = *CurrentImage(bucket);
      const std::vector<Match> records = co_await ReadRecords(op, at, image);
      stats.records += records.size();
      for (const Match& record : records) stats.block_bytes += record.block_bytes;
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return stats;
}

// Entries never move to another bucket, and a bucket is read as it was at one moment: whatever is in the
// table throughout is marked.
Task<Done> Table::Walk(Op& op, pool::Reach& reach) {
  pool::Beats beats(pool());
  for (size_t part = 0; part < roots_.size(); ++part) {
    reach.Mark(roots_[part], RootBytes(options_.buckets));
    for (uint64_t i = 0; i < options_.buckets; ++i) {
      const FarAddr at = BucketAt(part, i);
      const Bucket bucket = co_await ReadBucket(op, at);
      const Image image = *CurrentImage(bucket);
      for (const Entry& entry : image.entries) {
        if (entry.empty()) continue;
        const FarAddr block_at(at.node, entry.offset());
        uint64_t bytes = entry.bytes();
        if (bytes == 0) {
          BlockBuffer block;
          co_await ReadBlock(op, block_at, bytes, block);
          bytes = block.bytes().size();
        }
        reach.MarkBlock(block_at, bytes, 0);
      }
      if (beats.Due()) co_await beats.Beat(op);
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::Verify(Op& op) {
  const pool::PoolClient::Pin pin = pool().Begin();
  for (size_t part = 0; part < roots_.size(); ++part) {
    for (uint64_t i = 0; i < options_.buckets; ++i) co_await VerifyBucket(op, BucketAt(part, i));
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::VerifyBucket(Op& op, FarAddr at) {
  const Bucket bucket = co_await ReadBucket(op, at);
  const Image image = *CurrentImage(bucket);
  for (size_t entry = 0; entry < kEntries; ++entry) {
    if (image.entries[entry].empty()) continue;
    const Match match = co_await ReadMatch(op, at.node, image, entry);
    const std::string& key = match.record.key;
    const uint64_t hash = Hash64(AsBytes(key));
    const std::optional<Match> first = co_await FindKey(op, at.node, image, hash, key);
    if (BucketOf(hash) != at || !first.has_value() || first->entry != entry) {
      co_return Error(
          ErrorCode::kCorrupt,
          fmt::format("the key \"{}\" stands twice or in a bucket that is not its own", Escape(key)));
    }
  }
  co_return Done{};
}

}  // namespace farside::index::reference
