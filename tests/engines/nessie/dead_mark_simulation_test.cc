// Marks that dead clients leave on slots of a nessie table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/bytes.h"
#include "index/nessie/layout.h"
#include "index/nessie/nessie.h"
#include "tests/support/table_world.h"

namespace farside::index::nessie {
namespace {

using fabric::sim::FaultKind;

// A table that has grown once, and is not swept.
class GrownTable {
 public:
  explicit GrownTable(int seed) : seed_(seed), member_(world_, "nessie", MakeNessieEngine, kOptions) {
    member_.Now(member_.Maintain());
    while (StateWord(Load(Root())).version() == 1) {
      if (!member_.Try(member_.Insert(NewKey(), "v")).ok()) break;
    }
  }

  // Another client dies at the nth verb of an insert. False: there is no such verb.
  bool DieAt(uint64_t nth) {
    TableMember dying(world_, "nessie", MakeNessieEngine, kOptions);
    dying.Now(dying.Maintain());
    dying.Now(dying.Get("absent"));
    return dying.RunAndDieAt(nth, FaultKind::kCrashBefore, dying.Insert(NewKey(), "v"));
  }
  bool HasMark() {
    const uint64_t segment = Load(Root() + kDirectoryOffset + sizeof(uint64_t));
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      if (Word(Load(segment + slot * sizeof(Word))).is(Kind::kSplitting)) return true;
    }
    return false;
  }
  // When the dead client is gone.
  std::string InsertMore() {
    for (int round = 0; round < 50; ++round) {
      member_.Now(member_.Maintain());
      member_.Now(member_.Pause(std::chrono::milliseconds(2)));
    }
    for (int i = 0; i < 3; ++i) {
      const Result<bool> inserted = member_.Try(member_.Insert(NewKey(), "v"));
      if (!inserted.ok()) return inserted.error().ToString();
    }
    return "";
  }

 private:
  static constexpr uint64_t kSlots = 8;
  static inline const OptionMap kOptions = {
      {"slots", "8"}, {"max_load", "1"}, {"burst", "0"}, {"sweep", "0"}};

  uint64_t Root() { return member_.roots()[0].offset; }
  uint64_t Load(uint64_t offset) { return LoadU64(world_.memory().data() + offset); }
  std::string NewKey() { return fmt::format("s{}k{}", seed_, keys_++); }

  const int seed_;
  int keys_ = 0;
  TableWorld world_;
  TableMember member_;
};

// Failed when a client that moved a key gave up at a mark on the key's trails, also if a dead client had left
// it.
TEST(NessieDeadMark, ClientDiesWithAMark_InsertsThatNeedTheSlotsGoOn) {
  // Given a client that died with a mark on a slot. When another one inserts keys. Expect that all of them
  // find a place.
  int marks = 0;
  for (int seed = 0; seed < 60; ++seed) {
    for (uint64_t nth = 4; nth < 24; ++nth) {
      GrownTable table(seed);
      if (!table.DieAt(nth)) break;
      if (!table.HasMark()) continue;
      ++marks;
      EXPECT_EQ(table.InsertMore(), "") << "seed " << seed << ", verb " << nth;
    }
  }
  EXPECT_GT(marks, 4);
}

}  // namespace
}  // namespace farside::index::nessie
