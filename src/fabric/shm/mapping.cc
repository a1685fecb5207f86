#include "fabric/shm/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/size.h"
#include "fabric/memory/map_shared.h"

namespace farside::fabric::shm {
namespace {

// The size of what stands behind a descriptor; 0 if it cannot be mapped.
uint64_t SizeOf(const Descriptor& descriptor) {
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < 0) return 0;
  return static_cast<uint64_t>(status.st_size);
}

// Null if it cannot be mapped.
std::byte* MapForUs(const Descriptor& descriptor, uint64_t bytes) {
  const ForkDelay delay;
  void* const address = memory::MapShared(descriptor.get(), bytes);
  if (address == MAP_FAILED) return nullptr;
  static_cast<void>(::madvise(address, bytes, MADV_DONTFORK));
  return static_cast<std::byte*>(address);
}

Error NotOurs(const std::string& node, std::string_view what) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("what memory node {} sends makes no sense ({}); is it a farside daemon?",
                           Escape(node), what));
}

}  // namespace

Mapping::Mapping(Control* control, std::span<std::byte> region, uint64_t instance)
    : control_(control), region_(region), instance_(instance) {}

// A child of fork does not have the memory, but perhaps something else in its place.
Mapping::~Mapping() {
  if (guard_.forked()) return;
  ::munmap(control_, kControlBytes);
  ::munmap(region_.data(), region_.size());
}

Result<std::shared_ptr<Mapping>> Mapping::Map(const std::string& node, const Welcome& welcome,
                                              const Descriptor& control, const Descriptor& region) {
  const uint64_t bytes = welcome.region_bytes;
  if (welcome.control_bytes != kControlBytes || SizeOf(control) != kControlBytes) {
    return NotOurs(node, "its control memory has another size");
  }
  if (bytes == 0 || bytes % kLineBytes != 0 || bytes > std::numeric_limits<int64_t>::max() ||
      SizeOf(region) < bytes) {
    return NotOurs(node, "its region is smaller than it says");
  }
  if (welcome.slot >= kClientSlots) return NotOurs(node, "a slot that does not exist");

  std::byte* const mapped_control = MapForUs(control, kControlBytes);
  std::byte* const mapped_region = MapForUs(region, bytes);
  if (mapped_control == nullptr || mapped_region == nullptr) {
    const int error = errno;
    if (mapped_control != nullptr) ::munmap(mapped_control, kControlBytes);
    if (mapped_region != nullptr) ::munmap(mapped_region, bytes);
    return Error(ErrorCode::kOutOfMemory,
                 fmt::format("cannot map {} of memory node {}: {}", FormatSize(bytes), Escape(node),
                             std::generic_category().message(error)));
  }
  auto* const shared = reinterpret_cast<Control*>(mapped_control);
  std::shared_ptr<Mapping> mapping(new Mapping(shared, {mapped_region, bytes}, welcome.instance));
  const Header& header = shared->header;
  if (header.magic != kMagic || header.version != kVersion || header.slots != kClientSlots ||
      header.region_bytes != bytes || header.region_id != welcome.region_id ||
      header.instance != welcome.instance) {
    return NotOurs(node, "the header of its control memory contradicts its greeting");
  }
  return mapping;
}

}  // namespace farside::fabric::shm
