#include "tests/engines/continuity/bare_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "index/continuity/handlers.h"
#include "index/continuity/slot.h"
#include "pool/memory/block.h"
#include "pool/region/layout.h"

namespace farside::index::continuity {
namespace {

using fabric::NodeMemory;

constexpr int kMostCalls = 64;

Error Wrong(std::string what) { return Error(ErrorCode::kCorrupt, std::move(what)); }

const fabric::CallTable& Handlers() {
  static const fabric::CallTable table = [] {
    fabric::CallTable calls;
    Serve(calls);
    return calls;
  }();
  return table;
}

void WriteAt(NodeMemory& memory, uint64_t offset, std::span<const std::byte> bytes) {
  for (uint64_t done = 0; done < bytes.size(); done += sizeof(uint64_t))
    memory.Store(offset + done, LoadU64(bytes.data() + done));
}

std::string CounterText(uint64_t value) {
  std::array<std::byte, sizeof(uint64_t)> bytes{};
  StoreU64(bytes.data(), value);
  return std::string(AsText(bytes));
}

}  // namespace

// In every build.
void PlainMemory::Check(uint64_t offset) const {
  if (offset % sizeof(uint64_t) != 0 || offset >= bytes() || bytes() - offset < sizeof(uint64_t))
    std::abort();
}
uint64_t PlainMemory::Load(uint64_t offset) const {
  Check(offset);
  return LoadU64(bytes_.data() + offset);
}
void PlainMemory::Store(uint64_t offset, uint64_t word) {
  Check(offset);
  StoreU64(bytes_.data() + offset, word);
}

uint64_t FirstFree(Shape shape) { return kBareTable + TableBytes(shape.pairs()); }

std::vector<std::byte> EmptyTable(Shape shape, uint64_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  const Root root{.current = TableWord(kBareTable, 0), .shape = shape};
  std::memcpy(bytes.data() + kBareRoot, &root, sizeof root);
  Random random(seed);
  for (uint64_t at = FirstFree(shape); at < size; at += sizeof(uint64_t))
    StoreU64(bytes.data() + at, random.Next());
  return bytes;
}

Result<std::string> CallHandler(NodeMemory& memory, fabric::CallId call, std::string_view request) {
  return Handlers().Handle(call, memory, fabric::ClientId{1}, request);
}

// ---- changing ----------------------------------------------------------------------------------------

Memory BareClient::TakeSome(NodeMemory& memory, uint64_t bytes) {
  const Memory taken{take_ ? take_(memory, bytes) : std::exchange(free_, free_ + bytes), bytes};
  offered_[taken.offset] = bytes;
  return taken;
}

void BareClient::Link(uint64_t offset) {
  const auto found = offered_.find(offset);
  linked_.insert(*found);
  offered_.erase(found);
}

std::string BareClient::Check(std::vector<Memory> used, bool at_rest) const {
  std::ranges::sort(used, {}, &Memory::offset);
  uint64_t end = 0;
  for (const Memory& one : used) {
    if (one.offset < end) return fmt::format("the memory at {:#x} is used twice", one.offset);
    end = one.offset + one.bytes;
    const auto is = [&](const auto& held) {
      const auto found = held.find(one.offset);
      return found != held.end() && found->second == one.bytes;
    };
    if (!is(linked_) && (at_rest || !is(offered_)))
      return fmt::format("{} bytes at {:#x} are used, and no client has linked them, or they were given back",
                         one.bytes, one.offset);
  }
  if (at_rest && used.size() < linked_.size())
    return fmt::format("of {} blocks that were linked, {} are used", linked_.size(), used.size());
  return "";
}

void BareClient::KeepOnly(const std::vector<Memory>& used) {
  linked_.clear();
  offered_.clear();
  for (const Memory& one : used) linked_[one.offset] = one.bytes;
}

// What the reply says of memory.
Result<Reply> BareClient::Call(NodeMemory& memory, fabric::CallId call, std::string_view request) {
  const Result<std::string> answer = CallHandler(memory, call, request);
  if (!answer.ok()) return answer.error();
  const Result<Reply> reply = DecodeReply(*answer);
  if (!reply.ok()) return reply.error();
  for (const Memory& freed : reply->freed) {
    const auto found = linked_.find(freed.offset);
    if (freed.bytes == 0) continue;
    if (found == linked_.end() || found->second != freed.bytes)
      return Wrong(
          fmt::format("{} bytes at {:#x} are unlinked, and were not linked", freed.bytes, freed.offset));
    linked_.erase(found);
  }
  return reply;
}

Status BareClient::Grow(NodeMemory& memory, uint64_t doublings) {
  const Shape shape(memory.Load(root_ + kShapeOffset));
  const Memory table = TakeSome(memory, TableBytes(PairsOf(shape, static_cast<uint32_t>(doublings))));
  const GrowRequest grow{.root = root_, .table = table.offset, .doublings = doublings};
  const Result<Reply> grown = Call(memory, kGrowCall, EncodeFixed(grow));
  if (!grown.ok()) return grown.error();
  if (!grown->linked_block) return OkStatus();
  Link(table.offset);
  ++tables_;
  return OkStatus();
}

Result<Reply> BareClient::Make(NodeMemory& memory, const BareChange& change) {
  offered_.clear();
  if (change.moves) return Move(memory);
  const uint64_t hash = Hash64(AsBytes(change.key));
  ChangeRequest request;
  request.head = {.root = root_,
                  .hash = hash,
                  .delta = change.delta,
                  .key_bytes = static_cast<uint32_t>(change.key.size()),
                  .expected_bytes = static_cast<uint32_t>(change.expected.size()),
                  .kind = change.kind};
  request.key = change.key;
  request.expected = change.expected;
  const size_t stored = change.kind == ChangeKind::kIncrement ? sizeof(uint64_t) : change.value.size();
  if (change.kind == ChangeKind::kTouch) {
    const auto victim = blocks_.find(change.key);
    if (victim == blocks_.end()) return Reply();  // it stands in no block
    request.head.victim = victim->second.offset;
    request.head.block = TakeSome(memory, victim->second.bytes);
  } else if (change.kind != ChangeKind::kDelete && !FitsSlot(change.key.size(), stored)) {
    request.head.block = TakeSome(memory, pool::BlockBytes(change.key.size(), stored));
    if (change.kind != ChangeKind::kIncrement) {
      std::vector<std::byte> block(request.head.block.bytes);
      pool::EncodeBlock(block, change.key, change.value, hash);
      WriteAt(memory, request.head.block.offset, block);
    }
  } else if (change.kind != ChangeKind::kDelete && change.kind != ChangeKind::kIncrement) {
    request.value = change.value;
    request.head.value_bytes = static_cast<uint32_t>(change.value.size());
  }
  for (int calls = 0; calls < kMostCalls; ++calls) {
    const Result<Reply> reply = Call(memory, kChangeCall, Encode(request));
    if (!reply.ok()) return reply.error();
    if (reply->linked_group) Link(request.head.group);
    if (reply->linked_block) Link(request.head.block.offset);
    groups_ += reply->linked_group ? 1 : 0;
    if (reply->needs == Needs::kNothing) {
      if (reply->applied) blocks_.erase(change.key);
      if (reply->linked_block) blocks_[change.key] = request.head.block;
      offered_.clear();
      return *reply;
    }
    if (reply->needs == Needs::kGroup) {
      request.head.group = TakeSome(memory, kGroupBytes).offset;
    } else if (reply->needs == Needs::kEndOfGrowth) {
      const Result<Reply> moved = Move(memory);
      if (!moved.ok()) return moved.error();
    } else if (Status grown = Grow(memory, reply->doublings + 1); !grown.ok()) {
      return grown.error();
    }
  }
  return Wrong("the handlers ask again and again");
}

Result<Reply> BareClient::Move(NodeMemory& memory) {
  return Call(memory, kMoveCall, EncodeFixed(MoveRequest{.root = root_}));
}

Status BareClient::EndGrowth(NodeMemory& memory) {
  for (int calls = 0; calls < kMostCalls; ++calls) {
    const Root root{.current = TableWord(memory.Load(root_ + kCurrentOffset)),
                    .next = TableWord(memory.Load(root_ + kNextOffset))};
    if (!root.growing()) return OkStatus();
    const Result<Reply> moved = Move(memory);
    if (!moved.ok()) return moved.error();
  }
  return Wrong("the growth has no end");
}

// ---- reading -----------------------------------------------------------------------------------------

bool BareView::Has(uint64_t offset, uint64_t size) const {
  return offset % sizeof(uint64_t) == 0 && offset <= bytes.size() && size <= bytes.size() - offset;
}
uint64_t BareView::Load(uint64_t offset) const {
  return Has(offset, sizeof(uint64_t)) ? LoadU64(bytes.data() + offset) : 0;
}
Root BareView::root() const {
  Root root{};
  std::memcpy(&root, bytes.data() + root_at, sizeof root);
  return root;
}
BareView::Pair BareView::LoadPair(TableWord table, uint64_t number) const {
  Pair pair{.at = PairAt(table.offset(), number)};
  pair.indicator = Indicator(Load(pair.at + kIndicatorAt));
  pair.group = Load(pair.at + kIndicatorAt + kGroupOffset);
  return pair;
}

Status BareView::AddSlot(const Pair& pair, uint32_t slot, uint64_t number, TableWord table,
                         BareContent& content) const {
  const bool in_group = slot >= kFirstGroup;
  if (in_group && (pair.group % pool::kLine != 0 || pair.group == 0 || !Has(pair.group, kGroupBytes)))
    return Wrong("a pair names no group, and has slots in one");
  const uint64_t at = in_group ? pair.group + (slot - kFirstGroup) * kSlotBytes : pair.at + SlotInPair(slot);
  if (!Has(at, kSlotBytes)) return Wrong("a slot is outside");
  // Views of it are views of the region: decoding copies nothing.
  Slot copy;
  std::memcpy(copy.words.data(), bytes.data() + at, kSlotBytes);
  const std::optional<SlotView> view = DecodeSlot(copy);
  if (!view.has_value()) return Wrong("a slot counts that is damaged");
  std::pair<std::string_view, std::string_view> record;
  if (view->in_block) {
    if (!Has(view->offset, view->bytes)) return Wrong("a block is outside");
    const Result<pool::BlockView> block = pool::DecodeBlock(bytes.subspan(view->offset, view->bytes));
    if (!block.ok()) return Wrong("a block is torn");
    record = {block->key, block->value};
    content.used.push_back({view->offset, view->bytes});
    if (view->hash != Hash64(AsBytes(block->key))) return Wrong("a slot has a wrong hash");
  } else {
    const std::string_view here = AsText(bytes.subspan(at + 1, kSlotBytes - 1));
    record = {here.substr(0, view->key.size()), here.substr(view->key.size(), view->value.size())};
  }
  const Shape shape = root().shape;
  const Home home = HomeOf(Hash64(AsBytes(record.first)), PairsOf(shape, table.doublings()));
  if (home.pair != number || (shape.SlotsOf(home.odd) >> slot & 1) == 0)
    return Wrong("the key \"" + std::string(record.first) + "\" is where it does not belong, or torn");
  content.records.push_back(record);
  return OkStatus();
}

Status BareView::AddPair(TableWord table, uint64_t number, BareContent& content) const {
  const Pair pair = LoadPair(table, number);
  if (pair.indicator.moved()) {
    const Root now = root();
    if (!now.growing() || table != now.current) return Wrong("a pair has moved to no table");
    const uint64_t pairs = PairsOf(now.shape, table.doublings());
    Status low = AddPair(now.next, number, content);
    return low.ok() ? AddPair(now.next, number + pairs, content) : low;
  }
  if (live && pair.indicator.odd() && Load(pool::kHandlerOffset) == pair.at + kIndicatorAt)
    return Error(ErrorCode::kContended, "a pair is being changed");
  if (pair.group != 0) content.used.push_back({pair.group, kGroupBytes});
  for (uint32_t left = pair.indicator.bits(); left != 0; left &= left - 1) {
    Status added = AddSlot(pair, static_cast<uint32_t>(std::countr_zero(left)), number, table, content);
    if (!added.ok()) return added;
  }
  return OkStatus();
}

// Word 0 of a table.
Status BareView::CheckGroups(TableWord table, uint64_t groups) const {
  const uint64_t counted = Load(table.offset());
  if (counted < groups) return Wrong("there are more groups than are counted");
  if (counted > groups + 1) return Wrong("there are fewer groups than are counted");
  return OkStatus();
}

Result<BareContent> BareView::Content() const {
  const Root now = root();
  if (!now.shape.is_sound() || !now.current.is_sound()) return Wrong("there is no root");
  if (now.growing() && (!now.next.is_sound() || now.next.doublings() != now.current.doublings() + 1))
    return Wrong("the root has a next table that cannot be");
  const uint64_t pairs = PairsOf(now.shape, now.current.doublings());
  BareContent content;
  content.used.push_back({now.current.offset(), TableBytes(pairs)});
  if (now.growing()) content.used.push_back({now.next.offset(), TableBytes(2 * pairs)});
  uint64_t groups = 0;
  uint64_t groups_of_next = 0;
  for (uint64_t number = 0; number < pairs; ++number) {
    const Pair pair = LoadPair(now.current, number);
    if (pair.group != 0) ++groups;
    if (pair.indicator.moved() && now.growing()) {
      for (const uint64_t half : {number, number + pairs})
        groups_of_next += LoadPair(now.next, half).group != 0 ? 1 : 0;
    }
    // What lookups go by (Table::FirstTable).
    if (now.growing() && number < now.moved && !pair.indicator.moved())
      return Wrong("the root says of a pair that it has moved, and it has not");
    Status added = AddPair(now.current, number, content);
    if (!added.ok()) return added.error();
  }
  Status counted = CheckGroups(now.current, groups);
  if (counted.ok() && now.growing()) counted = CheckGroups(now.next, groups_of_next);
  if (!counted.ok()) return counted.error();
  auto& records = content.records;
  std::ranges::sort(records);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  const auto twice = std::ranges::adjacent_find(records, same);
  if (twice != records.end()) return Wrong("the key \"" + std::string(twice->first) + "\" is there twice");
  return content;
}

Result<std::vector<std::pair<std::string_view, std::string_view>>> BareView::Records() const {
  Result<BareContent> content = Content();
  if (!content.ok()) return content.error();
  return std::move(content->records);
}

Result<std::optional<std::string_view>> BareView::Find(std::string_view key) const {
  const Root now = root();
  const uint64_t hash = Hash64(AsBytes(key));
  BareContent content;
  Status added = OkStatus();
  const Home home = HomeOf(hash, PairsOf(now.shape, now.current.doublings()));
  if (!LoadPair(now.current, home.pair).indicator.moved()) {
    added = AddPair(now.current, home.pair, content);
  } else {
    if (!now.growing()) return Wrong("a pair has moved to no table");
    added = AddPair(now.next, HomeOf(hash, PairsOf(now.shape, now.next.doublings())).pair, content);
  }
  if (!added.ok()) return added.error();
  for (const auto& [found, value] : content.records) {
    if (found == key) return std::optional<std::string_view>(value);
  }
  return std::optional<std::string_view>();
}

void ApplyTo(BareModel& model, const BareChange& change) {
  if (change.moves) return;
  const auto found = model.find(change.key);
  const bool present = found != model.end();
  switch (change.kind) {
    case ChangeKind::kPut: model[change.key] = change.value; break;
    case ChangeKind::kInsert: model.emplace(change.key, change.value); break;
    case ChangeKind::kUpdate:
      if (present) found->second = change.value;
      break;
    case ChangeKind::kDelete: model.erase(change.key); break;
    case ChangeKind::kCompareAndSet:
      if (present && found->second == change.expected) found->second = change.value;
      break;
    case ChangeKind::kIncrement: {
      const uint64_t now = present ? LoadU64(AsBytes(found->second).data()) : 0;
      model[change.key] = CounterText(now + change.delta);
      break;
    }
    case ChangeKind::kTouch: break;
  }
}

}  // namespace farside::index::continuity
