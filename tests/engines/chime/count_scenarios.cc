#include "tests/engines/chime/count_scenarios.h"

#include <fmt/format.h>

#include <memory>

#include "tests/engines/chime/scenarios.h"
#include "tests/engines/chime/world.h"

namespace farside::index::chime {
namespace {

OptionMap LeavesOf(const char* span) {
  return {{"keys", "inline"}, {"span", span}, {"neighbourhood", span}, {"fanout", "16"}, {"hotspot", "0"}};
}

// The second put does not READ the header.
void Remember(Member& member, const std::string& key) {
  for (int i = 0; i < 2; ++i) member.Now(member.Put(key, "original"));
}

}  // namespace

std::string RememberedLeafIsSplit() {
  World world;
  Member member(world, LeavesOf("2"));
  Member other(world, LeavesOf("2"));
  other.Now(other.Put(EightBytes(10), "original"));
  Remember(member, EightBytes(30));
  other.Now(other.Put(EightBytes(20), "original"));
  member.Now(member.Put(EightBytes(30), "replaced"));
  const std::string got = other.Now(other.Get(EightBytes(30)));
  return got == "replaced" ? world.problem : fmt::format("the key is {}", got);
}

std::string RememberedLeafDies() {
  World world;
  Member member(world, LeavesOf("1"));
  Member other(world, LeavesOf("1"));
  for (uint64_t i = 0; i < 6; ++i) other.Now(other.Put(EightBytes(i), "original"));
  member.Now(member.Get(EightBytes(3)));
  Remember(member, EightBytes(3));
  if (!other.Now(other.Delete(EightBytes(3)))) return "the key is lost";
  member.Now(member.Put(EightBytes(3), "replaced"));
  const std::string got = other.Now(other.Get(EightBytes(3)));
  return got == "replaced" ? world.problem : fmt::format("the key is {}", got);
}

std::string RememberedLeafIsTakenOver() {
  return AtEveryVerb([](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    World world;
    auto owner = std::make_unique<Member>(world, LeavesOf("2"));
    Member member(world, LeavesOf("2"));
    Member other(world, LeavesOf("2"));
    owner->Now(owner->Put(EightBytes(10), "original"));
    Remember(member, EightBytes(30));
    more = owner->RunAndDieAt(verb, kind, owner->Put(EightBytes(20), "original"));
    // It waits for the lock of the dead client.
    other.Now(other.Put(EightBytes(10), "replaced"));
    // If the leaf was split, it knows where the key is now.
    other.Now(other.Get(EightBytes(30)));
    member.Now(member.Put(EightBytes(30), "replaced"));
    for (const uint64_t key : {10, 30}) {
      const std::string got = other.Now(other.Get(EightBytes(key)));
      if (got != "replaced") return fmt::format("key {} is {}", key, got);
    }
    owner.reset();
    return world.problem;
  });
}

}  // namespace farside::index::chime
