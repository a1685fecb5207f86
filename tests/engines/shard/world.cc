#include "tests/engines/shard/world.h"

#include <fmt/format.h>

#include <functional>
#include <string>

namespace farside::index::shard {

std::string KeyFor(const std::function<bool(const KeyHash&)>& fits, int nth) {
  for (int i = 0;; ++i) {
    std::string key = fmt::format("k{}", i);
    if (fits(HashOf(key)) && nth-- == 0) return key;
  }
}

Task<Done> LookThrice(Member& member) {
  for (int round = 0; round < 3; ++round) {
    co_await member.Sync();
    co_await member.Get("looks");
  }
  co_return Done{};
}

}  // namespace farside::index::shard
