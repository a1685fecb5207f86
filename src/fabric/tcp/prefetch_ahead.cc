#include "fabric/tcp/prefetch_ahead.h"

#include <cstdint>

#include "fabric/tcp/wire.h"

namespace farside::fabric::tcp {
namespace {

constexpr size_t kVerbsAhead = 16;

}  // namespace

size_t PrefetchAhead(std::span<const std::byte> bytes, memory::ServedNode& node) {
  size_t verbs = 0;
  while (verbs < kVerbsAhead && bytes.size() > sizeof(wire::FrameHeader)) {
    const auto header = wire::Load<wire::FrameHeader>(bytes.data());
    bytes = bytes.subspan(sizeof(header));
    if (header.body_bytes > bytes.size()) break;
    const bool alone = verbs == 0 && header.verbs <= 1 && header.body_bytes == bytes.size();
    verbs += header.verbs;
    if (alone) break;
    wire::GuessWhatIsTouched(bytes.first(header.body_bytes), node.region_bytes(),
                             [&node](uint64_t offset, uint64_t size, bool mutates) {
                               node.memory().Prefetch(offset, size, mutates);
                             });
    bytes = bytes.subspan(header.body_bytes);
  }
  return verbs;
}

}  // namespace farside::fabric::tcp
