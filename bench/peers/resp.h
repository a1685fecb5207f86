// RESP2, the protocol of Redis: what a server answers, one token at a time.
//
//   +OK\r\n              simple text
//   -ERR unknown\r\n     an error
//   :42\r\n              a number
//   $5\r\nhello\r\n      5 bytes; $-1\r\n is nil
//   *3\r\n               an array: 3 tokens follow; *-1\r\n is nil
//
// Tokens are flat: the elements of an array are tokens of their own, so nothing is nested here and nothing
// allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bench/peers/parsed.h"

namespace farside::peers {

struct RespToken {
  enum class Kind { kText, kError, kNumber, kBytes, kNil, kArray };

  Kind kind = Kind::kNil;
  std::string_view text;  // of kText, kError and kBytes: a part of what was parsed
  int64_t number = 0;     // of kNumber, or how many elements a kArray has
};

inline constexpr size_t kLongestRespLine = size_t{64} << 10;
inline constexpr int64_t kLongestRespBytes = int64_t{512} << 20;
inline constexpr int64_t kLongestRespArray = int64_t{1} << 20;

// Reads the token at the front of `in`, any bytes. If it is complete, `consumed` is how many bytes it has;
// otherwise neither is changed.
Parsed ParseResp(std::string_view in, RespToken& token, size_t& consumed);

}  // namespace farside::peers
