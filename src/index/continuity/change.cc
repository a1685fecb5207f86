// Changing a key: one Call, which the handler decides (handlers.cc). Before it, by a trip each, what does not
// fit into the request: the block of a large record, and large operands.
#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "index/continuity/errors.h"
#include "index/continuity/mutants.h"
#include "index/continuity/offered.h"
#include "index/continuity/table.h"
#include "pool/beats.h"
#include "pool/memory/block.h"
#include "pool/scoped_flag.h"

namespace farside::index::continuity {

using fabric::FarAddr;
using fabric::Op;

namespace {

constexpr size_t kCounterBytes = 8;
// Calls of a change that ask for groups and tables: a table doubles a bounded number of times, and each time
// a group, or two looks for memory, may come before.
constexpr uint64_t kMostCallsForMemory = 4 * (kMostDoublings + 1);

// The size of the value that a change may store; none: it stores none.
std::optional<size_t> StoredBytes(const Change& change) {
  switch (change.kind) {
    case ChangeKind::kDelete: return std::nullopt;
    case ChangeKind::kIncrement: return kCounterBytes;
    default: return change.value.size();
  }
}

// After these errors a handler may have run.
bool IsInDoubt(const Error& error) {
  return error.code() == ErrorCode::kOutcomeUnknown || error.code() == ErrorCode::kFenced ||
         error.code() == ErrorCode::kUnavailable;
}

}  // namespace

Task<Attempt> Table::TryChange(ChangeContext& context) {
  co_await WriteMemory(context);
  // A node asks again and again while the table grows, but not for ever: each Call that moves pairs moves one
  // at least, and each table that a table grows out of lies in the region, beside the next one.
  const uint64_t most_calls = context.part.most_pairs() + kMostCallsForMemory;
  std::optional<pool::Beats> beats;
  for (uint64_t calls = 0; calls < most_calls; ++calls) {
    const Reply reply = co_await CallChange(context);
    RetireAll(context, reply);
    if (context.change.kind == ChangeKind::kTouch && !reply.applied && Mutant(kTouchRetiresLosing))
      pool()
          .allocator(context.node)
          .Retire(context.change.victim, context.draft.bytes(), context.pin->epoch(context.node));
    if (reply.needs == Needs::kNothing) {
      context.result = {.was_present = reply.was_present, .applied = reply.applied, .counter = reply.counter};
      co_return Attempt::kDone;
    }
    co_await Provide(context, reply);
    // Moving all pairs of a large table may take longer than a lease.
    if (!beats.has_value()) beats.emplace(pool());
    if (beats->Due()) co_await beats->Beat(context.op);
  }
  co_return DamagedRoot(context.part.at());
}

// No trip for a small record.
Task<Done> Table::WriteMemory(ChangeContext& context) {
  const Change& change = context.change;
  pool::Allocator& allocator = pool().allocator(context.node);
  const std::optional<size_t> stored = StoredBytes(change);
  const bool in_slot =
      change.kind != ChangeKind::kTouch && (!stored.has_value() || FitsSlot(change.key.size(), *stored));
  if (!in_slot) {
    const uint64_t bytes = pool::BlockBytes(change.key.size(), *stored);
    if (!context.draft.Reserve(allocator, bytes)) co_await context.draft.FetchRoom(context.op);
    // The handler fills the block of a counter, and that of a record that moves.
    if (change.kind != ChangeKind::kIncrement && change.kind != ChangeKind::kTouch) {
      context.draft.Fill(change.key, change.value, context.hash);
      DueSweep sweep(allocator);
      Offered written(context.draft);
      co_await context.op.InOrder(context.draft.Write());
      written.TakeBack();
      sweep.NotDue();
    }
  }
  if (change.key.size() + change.expected.size() > kMostOperandsInRequest) {
    const uint64_t bytes = pool::BlockBytes(change.key.size(), change.expected.size());
    if (!context.operands.Reserve(allocator, bytes)) co_await context.operands.FetchRoom(context.op);
    context.operands.Fill(change.key, change.expected, context.hash);
    DueSweep sweep(allocator);
    Offered written(context.operands);
    co_await context.op.InOrder(context.operands.Write());
    written.TakeBack();
    sweep.NotDue();
  }
  co_return Done{};
}

ChangeRequest Table::RequestOf(const ChangeContext& context) {
  const Change& change = context.change;
  ChangeRequest request;
  request.head = {.root = context.part.at().offset,
                  .hash = context.hash,
                  .delta = change.delta,
                  .victim = change.victim.offset,
                  .key_bytes = static_cast<uint32_t>(change.key.size()),
                  .expected_bytes = static_cast<uint32_t>(change.expected.size()),
                  .kind = change.kind};
  if (context.draft.owned()) request.head.block = {context.draft.at().offset, context.draft.bytes()};
  if (context.group.owned()) request.head.group = context.group.at().offset;
  request.head.group_beyond_share = context.group_beyond_share;
  if (context.operands.owned()) {
    request.head.operands = {context.operands.at().offset, context.operands.bytes()};
  } else {
    request.key = change.key;
    request.expected = change.expected;
  }
  if (!context.draft.owned() && StoredBytes(change).has_value() && change.kind != ChangeKind::kIncrement) {
    request.value = change.value;
    request.head.value_bytes = static_cast<uint32_t>(change.value.size());
  }
  return request;
}

// One trip. If its outcome is not known, what it names may be linked, and is left alone.
Task<Reply> Table::CallChange(ChangeContext& context) {
  const std::string request = Encode(RequestOf(context));
  DueSweep sweep(pool().allocator(context.node));
  Offered block(context.draft);
  Offered group(context.group);
  Offered operands(context.operands);
  context.called = true;
  Result<std::string> answer = co_await context.op.Call(context.node, kChangeCall, request).Outcome();
  if (!answer.ok() && Mutant(kSentAgain))
    answer = co_await context.op.Call(context.node, kChangeCall, request).Outcome();
  if (!answer.ok()) {
    if (!IsInDoubt(answer.error())) {
      block.TakeBack();
      group.TakeBack();
      operands.TakeBack();
      sweep.NotDue();
      context.called = false;
    }
    co_return answer.error();
  }
  const Result<Reply> reply = DecodeReply(*answer);
  if (!reply.ok()) co_return reply.error();
  if (!reply->linked_block) block.TakeBack();
  if (!reply->linked_group) group.TakeBack();
  operands.TakeBack();
  sweep.NotDue();
  context.called = reply->applied;
  co_return *reply;
}

void Table::RetireAll(ChangeContext& context, const Reply& reply) {
  pool::Allocator& allocator = pool().allocator(context.node);
  for (const Memory& memory : reply.freed) {
    if (memory.bytes == 0) continue;
    const FarAddr at(context.node, memory.offset);
    const bool moved = context.change.kind == ChangeKind::kTouch && at == context.change.victim;
    if (Mutant(kOldTableFreedAtOnce) || (moved && Mutant(kTouchFreesAtOnce))) {
      allocator.FreeUnpublished(at, memory.bytes);
    } else {
      allocator.Retire(at, memory.bytes, context.pin->epoch(context.node));
    }
  }
}

// What a change is missing.
Task<Done> Table::Provide(ChangeContext& context, const Reply& reply) {
  pool::Allocator& allocator = pool().allocator(context.node);
  switch (reply.needs) {
    case Needs::kNothing: break;
    case Needs::kGroup:
      if (context.group.owned()) co_return DamagedRoot(context.part.at());  // the Call has brought one
      if (!context.group.Reserve(allocator, kGroupBytes)) co_await context.group.FetchRoom(context.op);
      break;
    case Needs::kTable: {
      const Result<Done> grown = co_await Grow(context, reply.doublings + 1).Outcome();
      const bool no_memory = !grown.ok() && grown.error().code() == ErrorCode::kOutOfMemory;
      if (!grown.ok() && (!no_memory || context.group_beyond_share)) co_return grown.error();
      context.group_beyond_share = no_memory;
      break;
    }
    case Needs::kEndOfGrowth: {
      const MoveRequest request{.root = context.part.at().offset};
      DueSweep sweep(allocator);
      const Result<std::string> answer =
          co_await context.op.Call(context.node, kMoveCall, EncodeFixed(request)).Outcome();
      if (!answer.ok() && !IsInDoubt(answer.error())) sweep.NotDue();
      if (!answer.ok()) co_return answer.error();
      const Result<Reply> moved = DecodeReply(*answer);
      if (!moved.ok()) co_return moved.error();
      sweep.NotDue();
      RetireAll(context, *moved);
      break;
    }
  }
  co_return Done{};
}

// Two trips and more, for the memory and for the Call. One of the operations of this client does it; the
// others wait, and the table that another client brings first counts.
Task<Done> Table::Grow(ChangeContext& context, uint64_t doublings) {
  Partition& part = context.part;
  if (part.grows()) co_return Grows();
  const pool::ScopedFlag busy(part.grows());
  if (part.IsBehind()) co_await part.Refresh(context.op);
  const uint64_t pairs = PairsOf(part.root().shape, static_cast<uint32_t>(doublings));
  if (pairs / 2 > part.most_pairs()) co_return DamagedRoot(part.at());  // what the reply says of the table
  Unpublished table;
  if (!table.Reserve(pool().allocator(context.node), TableBytes(pairs))) co_await table.FetchRoom(context.op);
  const GrowRequest request{.root = part.at().offset, .table = table.at().offset, .doublings = doublings};
  DueSweep sweep(pool().allocator(context.node));
  Offered offered(table);
  const Result<std::string> answer =
      co_await context.op.Call(context.node, kGrowCall, EncodeFixed(request)).Outcome();
  if (!answer.ok()) {
    if (!IsInDoubt(answer.error())) {
      offered.TakeBack();
      sweep.NotDue();
    }
    co_return answer.error();
  }
  const Result<Reply> reply = DecodeReply(*answer);
  if (!reply.ok()) co_return reply.error();
  if (!reply->linked_block) offered.TakeBack();
  sweep.NotDue();
  co_return Done{};
}

}  // namespace farside::index::continuity

template class farside::index::KeyedIndex<farside::index::continuity::Table>;
