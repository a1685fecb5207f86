#include "index/chime/record_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "index/chime/key.h"
#include "index/chime/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::ForBlock;
using fabric::Op;
using fabric::Order;

namespace {

constexpr size_t kBlocksAtOnce = 64;

}  // namespace

void RecordReader::Collect(const Leaf& leaf, const KeyRange& range, std::vector<Item>& items) const {
  const uint64_t from = PrefixOf(range.from);
  const size_t first = items.size();
  for (size_t slot = 0; slot < table_.shape().span; ++slot) {
    Entry entry = leaf.Get(table_.shape(), slot);
    if (Mutant(kHalfIgnored)) entry.key &= ~kMiddle;
    if (!entry.used || entry.key < from) continue;
    if (range.to.has_value() && entry.key > PrefixOf(*range.to)) continue;
    items.push_back({.prefix = entry.key, .value = entry.value});
  }
  std::sort(items.begin() + static_cast<std::ptrdiff_t>(first), items.end(),
            [](const Item& a, const Item& b) { return a.prefix < b.prefix; });
}

Record RecordReader::InlineRecord(const Item& item) {
  std::array<std::byte, 8> value;
  StoreU64(value.data(), item.value);
  return {TextOf(item.prefix, kPrefixBytes), std::string(AsText(value))};
}

Task<std::vector<Record>> RecordReader::Read(Op& op, std::span<const Item> items) const {
  std::vector<Record> records(items.size());
  if (table_.shape().inline_keys) {
    std::transform(items.begin(), items.end(), records.begin(), InlineRecord);
    co_return std::move(records);
  }
  std::vector<BlockBuffer> buffers(std::min(items.size(), kBlocksAtOnce));
  for (size_t begin = 0; begin < items.size(); begin += kBlocksAtOnce) {
    const size_t count = std::min(kBlocksAtOnce, items.size() - begin);
    fabric::Batch trip(op, Order::kTogether);
    for (size_t i = 0; i < count; ++i) {
      const BlockRef block(items[begin + i].value);
      if (block.bytes() == 0) continue;
      trip.Add(ForBlock(fabric::Read(table_.At(block), buffers[i].Resize(block.bytes()))));
    }
    co_await trip;
    for (size_t i = 0; i < count; ++i) {
      const BlockRef block(items[begin + i].value);
      if (block.bytes() == 0) co_await table_.ReadBlock(op, block, buffers[i]);
      const Result<pool::BlockView> view = pool::DecodeBlock(buffers[i].bytes());
      if (!view.ok()) co_return view.error();
      records[begin + i].key = view->key;
      records[begin + i].value = view->value;
    }
  }
  co_return std::move(records);
}

// The prefix of an inline key is all of it, so the items are in order already.
bool RecordReader::AppendInline(const KeyRange& range, std::span<const Item> items, size_t limit,
                                std::vector<Record>& page) {
  size_t appended = 0;
  page.reserve(page.size() + std::min(limit, items.size()));
  for (const Item& item : items) {
    Record record = InlineRecord(item);
    if (!range.Has(record.key)) continue;
    if (appended++ == limit) return true;
    page.push_back(std::move(record));
  }
  return false;
}

Task<bool> RecordReader::Append(Op& op, const KeyRange& range, std::vector<Item> items, size_t limit,
                                std::vector<Record>& page) const {
  if (table_.shape().inline_keys) co_return AppendInline(range, items, limit, page);
  size_t appended = 0;
  for (size_t begin = 0; begin < items.size();) {
    if (appended == limit) co_return true;
    // With all items of the last prefix: only their whole keys tell their order.
    size_t end = std::min(items.size(), begin + (limit - appended));
    while (end < items.size() && items[end].prefix == items[end - 1].prefix) ++end;
    std::vector<Record> records = co_await Read(op, std::span(items).subspan(begin, end - begin));
    std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.key < b.key; });
    for (Record& record : records) {
      if (!range.Has(record.key)) continue;
      if (appended == limit) co_return true;
      page.push_back(std::move(record));
      ++appended;
    }
    begin = end;
  }
  co_return false;
}

}  // namespace farside::index::chime
