// Makes bytes of a mapped file durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "farside/result.h"

namespace farside::fabric::memory {

// When it has returned, these bytes of the region survive a power cut (and perhaps others of the same pages
// with them). kCorrupt if the file was cut short meanwhile.
Status PersistMapped(std::span<std::byte> region, int file, uint64_t offset, uint64_t size);

}  // namespace farside::fabric::memory
