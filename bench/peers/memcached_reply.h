// The text protocol of memcached: what a server answers, one reply at a time. Both dialects, the classic one
// and the meta commands.
//
//   classic                             meta                      what it says
//   VALUE key flags 5\r\nhello\r\n      VA 5\r\nhello\r\n         a value
//   END\r\n                             EN\r\n                    no (more) values
//   STORED\r\n                          HD\r\n                    done
//   NOT_STORED\r\n                      NS\r\n                    not done
//                                       MN\r\n                    the answer to mn: everything before is done
//   VERSION 1.6.18\r\n
//   ERROR\r\n, CLIENT_ERROR why\r\n, SERVER_ERROR why\r\n
#pragma once

#include <cstddef>
#include <string_view>

#include "bench/peers/parsed.h"

namespace farside::peers {

struct MemcachedReply {
  enum class Kind { kValue, kEnd, kStored, kNotStored, kNoop, kVersion, kError };

  Kind kind = Kind::kEnd;
  std::string_view key;   // of a classic kValue; meta values do not say it
  std::string_view text;  // the value, the version, or the line of an error
};

inline constexpr size_t kLongestMemcachedLine = 2048;
inline constexpr size_t kLongestMemcachedValue = size_t{512} << 20;

// Reads the reply at the front of `in`, any bytes. If it is complete, `consumed` is how many bytes it has;
// otherwise neither is changed. A line that is none of the above is malformed.
Parsed ParseMemcached(std::string_view in, MemcachedReply& reply, size_t& consumed);

}  // namespace farside::peers
