// Where a pool is, as people write it:
//
//   embedded:                        memory of this process, fresh, 256MiB
//   embedded:?size=1GiB&nodes=3      three nodes of 1 GiB each
//   file:pool.farside                a file that exists
//   file:pool.farside?size=1GiB      the same; made if it does not exist
//
// Everything up to the first '?' is the path; nothing in it is escaped. Each parameter is given once at most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "farside/result.h"

namespace farside::pool {

struct PoolUrl {
  enum class Kind : uint8_t { kEmbedded, kFile };

  Kind kind = Kind::kEmbedded;
  std::string path;              // of a file
  std::optional<uint64_t> size;  // of each node's region, in bytes; always given if embedded
  uint32_t nodes = 1;
};

// kInvalidArgument, or kUnsupported for forms that other versions know; one line that shows how to write it.
Result<PoolUrl> ParseUrl(std::string_view url);

}  // namespace farside::pool
