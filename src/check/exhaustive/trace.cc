#include "check/exhaustive/trace.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.h"
#include "check/exhaustive/actor.h"

namespace farside::check::exhaustive {
namespace {

using fabric::Verb;
using fabric::VerbKind;

constexpr size_t kShownBytes = 96;

// Aligned words as numbers, what stands before and after them byte by byte.
std::string Words(uint64_t offset, std::span<const std::byte> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    if ((offset + i) % 8 == 0 && i + 8 <= bytes.size()) {
      text += fmt::format(" {:#x}", LoadU64(bytes.data() + i));
      i += 8;
    } else {
      text += fmt::format(" {:02x}", static_cast<unsigned>(bytes[i]));
      ++i;
    }
  }
  return text;
}

// All of a few bytes. Of many, the lines that are not zero, up to a bound.
std::string Contents(uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.size() <= 16) return Words(offset, bytes);
  std::string text;
  size_t shown = 0;
  for (size_t i = 0; i < bytes.size() && shown < kShownBytes;) {
    const size_t size = std::min(bytes.size() - i, fabric::kLineBytes - (offset + i) % fabric::kLineBytes);
    std::span<const std::byte> line = bytes.subspan(i, size);
    while (!line.empty() && line.back() == std::byte{0}) line = line.first(line.size() - 1);
    if (!line.empty()) {
      line = bytes.subspan(i, std::min(size, (line.size() + 7) / 8 * 8));
      text += fmt::format(" [{:#x}]{}", offset + i, Words(offset + i, line));
      shown += line.size();
    }
    i += size;
  }
  return text.empty() ? " zeros" : text;
}

std::string AtomicText(const Verb& verb, uint64_t old) {
  if (verb.kind == VerbKind::kFaa) return fmt::format("adds {:#x} to {:#x}", verb.desired, old);
  std::string text = fmt::format("{:#x} -> {:#x}", verb.expect, verb.desired);
  if (verb.kind == VerbKind::kMaskedCas) {
    text += fmt::format(" (compares {:#x}, swaps {:#x})", verb.compare_mask, verb.swap_mask);
  }
  return text + (Succeeds(verb, old) ? ", done" : fmt::format(", failed: it is {:#x}", old));
}

std::string PieceText(const Verb& verb, const Piece& piece, std::span<const std::byte> region) {
  switch (verb.kind) {
    case VerbKind::kRead: return "gives" + Contents(piece.offset, region.subspan(piece.offset, piece.bytes));
    case VerbKind::kWrite: return "stores" + Contents(piece.offset, {verb.from + piece.at, piece.bytes});
    case VerbKind::kCall: return fmt::format("engine {} operation {}", verb.call.engine, verb.call.operation);
    case VerbKind::kFence: return fmt::format("of connection {}", verb.desired);
    default: return AtomicText(verb, LoadU64(region.data() + piece.offset));
  }
}

// "Put(k, v1)"
std::string CallText(const Operation& call) {
  const std::string text = ToString(call);
  const size_t begin = text.find(": ") + 2;
  return text.substr(begin, text.rfind(" -> ") - begin);
}

}  // namespace

void Trace::Add(uint32_t actor, bool late, std::string_view what) {
  lines_.push_back(fmt::format("client {}{} {}", ClientNumber(actor), late ? " (late)" : "", what));
}

void Trace::Add(const Event& event) {
  if (event.kind == EventKind::kInvoke) {
    const Operation& call = event.call;
    ids_[event.operation] = history_.Invoke(call.client, {.kind = call.kind,
                                                          .key = call.key,
                                                          .value = call.value,
                                                          .expected = call.expected,
                                                          .delta = call.delta});
    lines_.push_back(fmt::format("client {} begins {}", call.client, CallText(call)));
    return;
  }
  const OpId id = ids_.at(event.operation);
  switch (event.kind) {
    case EventKind::kReturn: history_.Return(id, event.outcome); break;
    case EventKind::kRefuse: history_.Refuse(id, event.why); break;
    default: history_.LoseAnswer(id); break;
  }
  const std::string text = ToString(history_[id]);
  lines_.push_back(fmt::format("client {} ends {}", history_[id].client, text.substr(text.find(": ") + 2)));
}

void Trace::Add(const Request& request, const Piece& part, bool late, std::span<const std::byte> region,
                std::string_view name, std::string_view remark) {
  const Verb& verb = request.verbs[part.verb];
  std::string text(fabric::Name(verb.kind));
  if (!IsControl(verb.kind)) {
    text += fmt::format(" {:#x}", part.offset);
    if (verb.size != 8) text += fmt::format("+{}", part.bytes);
    if (!name.empty()) text += fmt::format(" ({})", name);
    if (part.bytes < verb.size) text += fmt::format(" of {:#x}+{}", verb.at.offset, verb.size);
  }
  text += ' ';
  text += PieceText(verb, part, region);
  text += remark;
  Add(request.actor, late, text);
}

}  // namespace farside::check::exhaustive
