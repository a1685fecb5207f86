// Where a pool is, as people write it:
//
//   embedded:                        memory of this process, fresh, 256MiB
//   embedded:?size=1GiB&nodes=3      three nodes of 1 GiB each
//   file:pool.farside                a file that exists
//   file:pool.farside?size=1GiB      the same; made if it does not exist
//   pmem:pool.farside?size=1GiB      the same, but durable: what was acknowledged survives a power cut
//   shm:NAME                         a memory node on this machine, as `farside serve --shm NAME` offers it
//   shm:NAME,NAME                    several nodes, in this order
//   tcp://HOST:PORT                  a memory node anywhere, as `farside serve --listen` offers it
//   tcp://HOST:PORT,HOST:PORT        several nodes, in this order
//   tcp://HOST:PORT?ca=PATH&cert=PATH&key=PATH     with TLS, as every address but loopback needs
//   tcp://HOST:PORT?insecure=yes     without, although it is not loopback
//
// Everything up to the first '?' is the path or the list of nodes; nothing in it is escaped. Each parameter
// is given once at most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "farside/result.h"

namespace farside::pool {

struct PoolUrl {
  enum class Kind : uint8_t { kEmbedded, kFile, kPmem, kShm, kTcp };

  Kind kind = Kind::kEmbedded;
  std::string path;              // of a file
  std::optional<uint64_t> size;  // of each node's region, in bytes; always given if embedded
  uint32_t nodes = 1;

  std::vector<std::string> names;  // of nodes that others serve: NAME, or HOST:PORT
  // Of tcp: files in PEM form. All three, or none.
  std::string ca;
  std::string cert;
  std::string key;
  bool insecure = false;

  bool in_file() const { return kind == Kind::kFile || kind == Kind::kPmem; }
  // Whether its memory belongs to another process, which may be gone, or serve others at the same time.
  bool remote() const { return kind == Kind::kShm || kind == Kind::kTcp; }
};

// Whether it begins as one of the forms above does, right or wrong behind that: what tells a URL from another
// word.
bool HasUrlScheme(std::string_view text);

// kInvalidArgument, or kUnsupported for forms that other versions know; one line that shows how to write it.
Result<PoolUrl> ParseUrl(std::string_view url);

}  // namespace farside::pool
