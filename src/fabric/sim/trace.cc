#include "fabric/sim/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace farside::fabric::sim {

std::string Trace::Where(FarAddr at) const {
  std::string text = fmt::format("n{}+{:#x}", Index(at.node), at.offset);
  const std::string known = describe_ ? describe_(at) : "";
  if (!known.empty()) text += fmt::format(" ({})", known);
  return text;
}

std::string Trace::What(const Verb& verb) const {
  std::string text = fmt::format("{}{}", verb.fenced ? "fenced " : "", Name(verb.kind));
  switch (verb.kind) {
    case VerbKind::kRead:
    case VerbKind::kWrite: return fmt::format("{} {} {} B", text, Where(verb.at), verb.size);
    case VerbKind::kCas:
      return fmt::format("{} {} {:#x}->{:#x}", text, Where(verb.at), verb.expect, verb.desired);
    case VerbKind::kMaskedCas:
      return fmt::format("{} {} {:#x}/{:#x}->{:#x}/{:#x}", text, Where(verb.at), verb.expect,
                         verb.compare_mask, verb.desired, verb.swap_mask);
    case VerbKind::kFaa: return fmt::format("{} {} +{:#x}", text, Where(verb.at), verb.desired);
    case VerbKind::kCall:
      return fmt::format("{} n{} {}.{}", text, Index(verb.at.node), verb.call.engine, verb.call.operation);
    case VerbKind::kFence: return fmt::format("{} n{} client {}", text, Index(verb.at.node), verb.desired);
  }
  return text;
}

std::string Trace::Brief(std::span<const std::byte> bytes) {
  constexpr size_t kMostWords = 8;
  std::string text = "[";
  for (size_t at = 0; at < bytes.size() && at < kMostWords * 8; at += 8) {
    std::byte word[8] = {};
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(at), std::min<size_t>(8, bytes.size() - at), word);
    text += fmt::format("{}{:x}", at == 0 ? "" : " ", LoadU64(word));
  }
  if (bytes.size() > kMostWords * 8) text += " ...";
  return text + "]";
}

void Trace::Add(Nanos now, ClientId client, std::string_view what) {
  if (client == ClientId::kNone) {
    lines_.push_back(fmt::format("{:>10} ns            {}", now.count(), what));
  } else {
    lines_.push_back(fmt::format("{:>10} ns  client {:<2} {}", now.count(), Number(client), what));
  }
}

std::string Trace::ToString() const {
  std::string text;
  for (const std::string& line : lines_) {
    text += line;
    text += '\n';
  }
  return text;
}

}  // namespace farside::fabric::sim
