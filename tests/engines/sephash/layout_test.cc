// The bytes of the sephash table.
#include "index/sephash/layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/sephash/sephash.h"
#include "tests/support/table_world.h"

namespace farside::index::sephash {
namespace {

// A dump without text, in which "*" stands for lines that repeat the one before them.
std::string Dump(std::span<const std::byte> bytes) {
  constexpr size_t kBytesOfALine = 16;
  constexpr size_t kOffsetColumns = 8;
  std::string dump;
  std::string last;
  bool repeats = false;
  for (size_t at = 0; at < bytes.size(); at += kBytesOfALine) {
    std::string line = HexDump(bytes.subspan(at, kBytesOfALine), at);
    line.resize(line.find("  |"));
    const std::string hex = line.substr(kOffsetColumns);
    if (hex == last && !repeats) dump += "*\n";
    repeats = hex == last;
    if (!repeats) dump += line + "\n";
    last = hex;
  }
  return dump;
}

TEST(SephashLayout, DumpForLook) {
  TableWorld world;
  TableMember member(world, "sephash", MakeSephashEngine, {{"entries", "3"}, {"main", "1"}});
  const auto show = [&](const char* what) {
    const uint64_t root = member.roots()[0].offset;
    fmt::print("==== {} root {:x}\n{}", what, root, Dump(world.memory().subspan(root, sizeof(Root))));
    for (int part = 0; part < 2; ++part) {
      const uint64_t at = LoadU64(world.memory().data() + root + 64 + 8 * part);
      if (at == 0) continue;
      const uint64_t seg = LoadU64(world.memory().data() + at);
      fmt::print("part {} at {:x}\n{}", part, at, Dump(world.memory().subspan(at, 64)));
      fmt::print("segment at {:x}\n{}", seg, Dump(world.memory().subspan(seg, 64)));
      const MetaWord meta(LoadU64(world.memory().data() + seg));
      fmt::print("main at {:x}, bytes {}\n{}", meta.main(), meta.main_bytes(),
                 Dump(world.memory().subspan(meta.main(), meta.main_bytes())));
    }
  };
  for (const char* key : {"a", "b", "c", "d", "e", "f"})
    fmt::print("{} {:016x}\n", key, Hash64(AsBytes(std::string_view(key))));
  show("empty");
  for (const char* key : {"a", "b", "c"}) member.Now(member.Put(key, "v"));
  member.Now(member.Put("d", "v"));
  member.Now(member.Delete("a"));
  show("merged");
  member.Now(member.Put("e", "v"));
  show("split");
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::sephash
