#include "index/continuity/handlers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/continuity/mutants.h"
#include "index/continuity/node_table.h"
#include "index/continuity/request.h"
#include "pool/memory/block.h"

namespace farside::index::continuity {
namespace {

using fabric::ClientId;
using fabric::NodeMemory;

// Pairs that a change moves, beside what it changes, while the table grows; and a Call for that alone. So a
// table of P pairs has grown after P / 2 changes, and the processor is never long with one Call.
constexpr uint32_t kMovedByChange = 2;
constexpr uint32_t kMovedByCall = 32;
constexpr size_t kCounterBytes = 8;

Error Refuse(std::string_view why) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("a change of a continuity table {}", why));
}

// A change of one key, from the request to the reply.
class KeyChange {
 public:
  KeyChange(NodeTable& table, const ChangeRequest& request)
      : table_(table),
        head_(request.head),
        key_(request.key),
        expected_(request.expected),
        value_(request.value) {}

  Result<Reply> Make() {
    if (Status read = ReadOperands(); !read.ok()) return read.error();
    if (Status sound = CheckRequest(); !sound.ok()) return sound.error();
    Status made = Try();
    if (!made.ok()) return made.error();
    if (reply_.applied) table_.MoveSome(kMovedByChange, reply_);
    reply_.doublings = table_.root().current.doublings();
    return reply_;
  }

 private:
  // Before anything is stored: what the change would link must not make the table one in which other records
  // are lost or never found.
  Status CheckRequest() {
    if (Hash64(AsBytes(key_)) != head_.hash) return Refuse("has a hash that is not that of its key");
    if (head_.group != 0 && !CanBe({head_.group, kGroupBytes}))
      return Refuse("brings a group that cannot be");
    if (head_.kind == ChangeKind::kDelete) return OkStatus();
    const bool touch = head_.kind == ChangeKind::kTouch;
    const bool increment = head_.kind == ChangeKind::kIncrement;
    const Memory block = head_.block;
    if (block.bytes == 0) {
      const bool fits = !touch && FitsSlot(key_.size(), increment ? kCounterBytes : value_.size());
      return fits ? OkStatus() : Refuse("needs a block, and brings none");
    }
    if (!CanBe(block) || block.bytes > kMostBlockBytes) return Refuse("brings a block that cannot be");
    if (increment && block.bytes != pool::BlockBytes(key_.size(), kCounterBytes))
      return Refuse("brings a block of another size");
    // The handler itself writes the block of a touch and of an increment.
    if (touch || increment) return OkStatus();
    if (!table_.IsBlock(block, head_.hash) || !table_.HasKey(block, key_))
      return Refuse("brings a block of another record");
    return OkStatus();
  }
  bool CanBe(Memory memory) {
    return memory.offset % pool::kLine == 0 && table_.memory().Has(memory.offset, memory.bytes);
  }

  Status ReadOperands() {
    if (head_.operands.bytes == 0) return OkStatus();
    if (head_.operands.bytes > kMostBlockBytes) return Refuse("has operands that are too large");
    operands_ = table_.memory().LoadBytes(head_.operands.offset, head_.operands.bytes);
    const Result<pool::BlockView> view = pool::DecodeBlock(AsBytes(operands_));
    if (!view.ok()) return view.error();
    key_ = view->key;
    expected_ = view->value;
    return OkStatus();
  }

  Status Try() {
    pair_ = table_.PairOf(head_.hash);
    found_ = table_.Find(pair_, head_.hash, key_);
    if (Status sound = table_.Check(); !sound.ok()) return sound;
    reply_.was_present = found_.has_value();
    const Result<Decision> decision = DecideHere();
    if (!decision.ok()) return decision.error();
    if (!decision->applied) return OkStatus();
    NodeTable::PairChange change;
    if (found_.has_value()) change.clear = found_->slot;
    if (!decision->removes) {
      const bool room = FindRoom(change);
      if (Status sound = table_.Check(); !sound.ok()) return sound;
      if (!room) return OkStatus();
      Fill(*decision, change);
      if (Status sound = table_.Check(); !sound.ok()) return sound;
    }
    if (change.group != 0) table_.CountGroup(pair_.table);
    table_.Apply(pair_, change);
    reply_.applied = true;
    reply_.counter = decision->counter;
    reply_.linked_block = head_.block.bytes != 0 && !decision->removes;
    reply_.linked_group = change.group != 0;
    if (!found_.has_value()) return OkStatus();
    const std::optional<SlotView> replaced = DecodeSlot(found_->content);
    if (replaced->in_block) reply_.Free({replaced->offset, replaced->bytes});
    return OkStatus();
  }

  // The rules of all tables (kit/change.h). A touch is decided by the slot: it names the block, or not
  // (evac/1).
  Result<Decision> DecideHere() {
    if (head_.kind == ChangeKind::kTouch) {
      const std::optional<SlotView> view =
          found_.has_value() ? DecodeSlot(found_->content) : std::optional<SlotView>();
      const bool in_block = view.has_value() && view->in_block;
      const bool stands_there = in_block && (view->offset == head_.victim || Mutant(kTouchByWrite));
      return Decision{.applied = stands_there && view->bytes == head_.block.bytes};
    }
    Change change(head_.kind, key_, value_);
    change.expected = expected_;
    change.delta = head_.delta;
    if (!found_.has_value()) return Decide(change, std::nullopt);
    const Result<std::string_view> found = FoundValue();
    if (!found.ok()) return found.error();
    return Decide(change, *found);
  }

  // Only what the decision needs: values may be large.
  Result<std::string_view> FoundValue() {
    const bool needed = head_.kind == ChangeKind::kCompareAndSet || head_.kind == ChangeKind::kIncrement;
    if (!needed) return std::string_view();
    const std::optional<SlotView> view = DecodeSlot(found_->content);
    if (!view->in_block) return view->value;
    block_ = table_.memory().LoadBytes(view->offset, view->bytes);
    const Result<pool::BlockView> block = pool::DecodeBlock(AsBytes(block_));
    if (!block.ok()) return block.error();
    return block->value;
  }

  // A free slot, in a group that the client has brought if need be. False: the reply says what is missing.
  bool FindRoom(NodeTable::PairChange& change) {
    const bool odd = table_.IsOdd(head_.hash);
    change.set = table_.FreeSlot(pair_, odd);
    if (change.set.has_value()) return InPlace(change);
    if (table_.growing() && pair_.table == table_.root().current) {
      table_.Move(pair_, reply_);
      pair_ = table_.PairOf(head_.hash);
      found_ = table_.Find(pair_, head_.hash, key_);
      if (found_.has_value()) change.clear = found_->slot;
      change.set = table_.FreeSlot(pair_, odd);
      if (change.set.has_value()) return true;
    }
    if (Mutant(kFullSegmentRefuses)) return false;
    const bool in_any_case = head_.group_beyond_share && pair_.group == 0 && table_.root().shape.every() != 0;
    if (in_any_case || table_.MayHaveGroup(pair_)) {
      if (head_.group == 0) {
        reply_.needs = Needs::kGroup;
        return false;
      }
      NodeTable::Pair with_group = pair_;
      with_group.group = head_.group;
      change.group = head_.group;
      change.set = table_.FreeSlot(with_group, odd);
      return true;
    }
    reply_.needs = table_.growing() ? Needs::kEndOfGrowth : Needs::kTable;
    return false;
  }
  // Does nothing, except with the planted bug that overwrites a counting slot (continuity/2); returns true.
  static bool InPlace(NodeTable::PairChange& change) {
    if (Mutant(kUpdateInPlace) && change.clear.has_value()) {
      change.set = change.clear;
      change.clear.reset();
    }
    return true;
  }

  // The slot of the new record; a block becomes durable with it (continuity/3).
  void Fill(const Decision& decision, NodeTable::PairChange& change) {
    CheckedMemory& memory = table_.memory();
    const Memory block = head_.block;
    const std::string_view value = decision.Value(Change(head_.kind, key_, value_));
    if (block.bytes == 0) {
      change.content = RecordSlot(key_, value);
      return;
    }
    if (head_.kind == ChangeKind::kTouch) {
      const std::optional<SlotView> view = DecodeSlot(found_->content);
      const uint64_t from = Mutant(kTouchByWrite) ? head_.victim : view->offset;
      memory.StoreBytes(block.offset, memory.LoadBytes(from, view->bytes));
    } else if (head_.kind == ChangeKind::kIncrement) {
      std::vector<std::byte> bytes(block.bytes);
      pool::EncodeBlock(bytes, key_, value, head_.hash);
      memory.StoreBytes(block.offset, AsText(bytes));
    }
    if (!Mutant(kBlockNotFlushed)) memory.Flush(block.offset, block.bytes);
    change.content = BlockSlot(block.offset, block.bytes, head_.hash);
  }

  NodeTable& table_;
  const ChangeHead& head_;
  std::string_view key_;
  std::string_view expected_;
  const std::string_view value_;
  std::string operands_;  // if they stand in a block
  std::string block_;     // what was found, if it stands in one

  NodeTable::Pair pair_;
  std::optional<NodeTable::Found> found_;
  Reply reply_;
};

Result<std::string> HandleChange(NodeMemory& memory, ClientId /*caller*/, std::string_view bytes) {
  const Result<ChangeRequest> request = DecodeChange(bytes);
  if (!request.ok()) return request.error();
  Result<NodeTable> table = NodeTable::Open(memory, request->head.root);
  if (!table.ok()) return table.error();
  const Result<Reply> reply = KeyChange(*table, *request).Make();
  if (!reply.ok()) return reply.error();
  return EncodeFixed(*reply);
}

Result<std::string> HandleGrow(NodeMemory& memory, ClientId /*caller*/, std::string_view bytes) {
  const Result<GrowRequest> request = DecodeGrow(bytes);
  if (!request.ok()) return request.error();
  Result<NodeTable> table = NodeTable::Open(memory, request->root);
  if (!table.ok()) return table.error();
  if (request->doublings > kMostDoublings || request->table % pool::kLine != 0 || request->table == 0 ||
      !table->HasTable(request->table, static_cast<uint32_t>(request->doublings)))
    return Error(ErrorCode::kInvalidArgument, "a continuity table cannot grow into this memory");
  Reply reply;
  reply.applied = table->Begin(TableWord(request->table, static_cast<uint32_t>(request->doublings)));
  reply.linked_block = reply.applied;
  reply.doublings = table->root().current.doublings();
  return EncodeFixed(reply);
}

Result<std::string> HandleMove(NodeMemory& memory, ClientId /*caller*/, std::string_view bytes) {
  const Result<MoveRequest> request = DecodeMove(bytes);
  if (!request.ok()) return request.error();
  Result<NodeTable> table = NodeTable::Open(memory, request->root);
  if (!table.ok()) return table.error();
  Reply reply;
  table->MoveSome(kMovedByCall, reply);
  // What was unlinked has to reach the client. It comes again, and meets the error then.
  if (Status sound = table->Check(); !sound.ok() && reply.freed_count() == 0) return sound.error();
  reply.doublings = table->root().current.doublings();
  return EncodeFixed(reply);
}

Result<std::string> HandleSettle(NodeMemory& memory, ClientId /*caller*/, std::string_view bytes) {
  const Result<SettleRequest> request = DecodeSettle(bytes);
  if (!request.ok()) return request.error();
  Result<NodeTable> table = NodeTable::Open(memory, request->root);
  if (!table.ok()) return table.error();
  table->Settle(TableWord(request->table), request->pair);
  if (Status sound = table->Check(); !sound.ok()) return sound.error();
  return EncodeFixed(Reply{.doublings = table->root().current.doublings()});
}

}  // namespace

void Serve(fabric::CallTable& calls) {
  calls.Set(kChangeCall, HandleChange);
  calls.Set(kGrowCall, HandleGrow);
  calls.Set(kMoveCall, HandleMove);
  calls.Set(kSettleCall, HandleSettle);
}

}  // namespace farside::index::continuity
