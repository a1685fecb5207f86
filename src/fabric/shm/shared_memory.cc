#include "fabric/shm/shared_memory.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace farside::fabric::shm {
namespace {

uint64_t RandomWord() {
  uint64_t word = 0;
  // So few bytes always come in one piece.
  [[maybe_unused]] const ssize_t drawn = ::getrandom(&word, sizeof word, 0);
  assert(drawn == sizeof word);
  return word;
}

}  // namespace

memory::RegionId NewRegionId() { return {RandomWord(), RandomWord()}; }

Result<std::unique_ptr<SharedMemory>> SharedMemory::Create(memory::Region region, memory::RegionId id) {
  const uint64_t bytes = region.bytes().size();
  if (region.descriptor() < 0) {
    return Error(ErrorCode::kInvalidArgument,
                 "memory of this process alone cannot be shared; make it shareable");
  }
  if (bytes == 0 || bytes % kLineBytes != 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a region of {} bytes; choose a multiple of {}", bytes, kLineBytes));
  }
  Result<memory::Region> control = memory::Region::Shareable(kControlBytes);
  if (!control.ok()) return control.error();
  std::unique_ptr<SharedMemory> shared(new SharedMemory(std::move(region), std::move(*control)));
  Header& header = shared->control().header;  // zero, like all of it
  header.magic = kMagic;
  header.version = kVersion;
  header.slots = kClientSlots;
  header.region_bytes = bytes;
  header.region_id = id;
  header.instance = RandomWord();
  return shared;
}

// Only pages that exist can be gathered into huge ones.
bool SharedMemory::UseHugePages(const std::function<bool(uint64_t done)>& go_on) const {
  constexpr int kPopulate = 23;  // MADV_POPULATE_WRITE of Linux 5.14, which changes nothing; and
  constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1: older headers do not name them
  constexpr uint64_t kPiece = uint64_t{64} << 20;
  const std::span<std::byte> bytes = region_.bytes();
  bool all = true;
  for (uint64_t offset = 0; offset < bytes.size() && all; offset += kPiece) {
    const std::span<std::byte> piece = bytes.subspan(offset, std::min(kPiece, bytes.size() - offset));
    all = go_on(offset) && ::madvise(piece.data(), piece.size(), kPopulate) == 0 &&
          ::madvise(piece.data(), piece.size(), kCollapse) == 0;
  }
  return all;
}

}  // namespace farside::fabric::shm
