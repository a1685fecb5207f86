#include "tests/engines/nessie/full_pool_scenarios.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "tests/engines/nessie/scenes.h"

namespace farside::index::nessie {
namespace {

using std::chrono::milliseconds;

constexpr int kMostRounds = 100;

// A key that is about to be deleted, and another one. When it is full, there is no memory for a tombstone but
// one spare line.
class FullPool {
 public:
  FullPool() : play({{"grow", "no"}}, {.region_bytes = 512 << 10}) {
    for (Member* member : {&first, &second, &third}) member->Now(member->Get(K()));
    second.Now(second.Put(K(), "0"));
    second.Now(second.Put(At2(), "0"));
  }

  // `third` has all other spare lines, but does not use them.
  void Fill() {
    LetMemoryGo(play.world);
    for (Member* member : {&first, &second, &third}) TakeAll(*member);
    left_ = first.pool().member(kNode).self().slot() % kSpareLines;
    for (size_t line = 0; line < kSpareLines; ++line) {
      if (line != left_) SetOwner(line, third.pool().member(kNode).self().bits());
    }
  }
  static void TakeAll(Member& member) {
    for (uint64_t bytes = 4096; bytes > 0; bytes -= pool::kLine) {
      while (member.Try(member.Hold(bytes)).ok()) continue;
    }
  }
  // Whether it ends at last, although there is no memory.
  bool Deletes(Member& member, const std::string& key) {
    for (int round = 0; round < kMostRounds; ++round) {
      const Result<bool> deleted = member.Try(member.Delete(key));
      if (deleted.ok()) return *deleted;
      if (deleted.error().code() != ErrorCode::kOutOfMemory) play.world.Complain(deleted.error().ToString());
      play.LetPass(milliseconds(1));
      TakeAll(member);  // what dead clients have left
    }
    return false;
  }
  bool HasTheLine(Member& member) const {
    return LoadU64(AddressOfOwner(left_)) == member.pool().member(kNode).self().bits();
  }
  // Of the key that was to be deleted.
  std::string Value() { return second.Now(second.Get(K())); }
  std::string End() {
    for (Member* member : {&first, &second, &third}) {
      if (member != dead) member->GiveBack();
    }
    for (size_t line = 0; line < kSpareLines; ++line) SetOwner(line, 0);
    // The history knows nothing of them.
    for (const std::string& key : {K(), At2()}) second.Now(second.Delete(key));
    return play.End();
  }
  void Kill(Member& member) {
    dead = &member;
    play.Kill(member);
  }

  Play play;
  Member& first = play.Enter();
  Member& second = play.Enter();
  Member& third = play.Enter();
  Member* dead = nullptr;

 private:
  static constexpr fabric::NodeId kNode{0};

  std::byte* AddressOfOwner(size_t line) const {
    return play.world.memory().data() + play.world.roots[0].offset + kSparesOffset + line * sizeof(uint64_t);
  }
  void SetOwner(size_t line, uint64_t owner) { StoreU64(AddressOfOwner(line), owner); }

  size_t left_ = 0;  // the spare line that is left
};

}  // namespace

std::string RefusedInsertInAFullPool() {
  FullPool pool;
  pool.Fill();
  if (pool.first.Now(pool.first.Insert(K(), "1"))) pool.play.world.Complain("the key was there");
  return pool.End();
}

std::string DiesWithASpareLine() {
  return AtEveryVerb([](FaultKind kind, uint64_t verb, bool& more) -> std::string {
    FullPool pool;
    pool.Fill();
    more = pool.first.RunAndDieAt(verb, kind, pool.first.Delete(K()));
    const bool may_be_done = pool.Value() == "absent";
    pool.Kill(pool.first);
    const bool deleted = pool.Deletes(pool.second, At2());
    if (!deleted || !pool.HasTheLine(pool.second)) pool.play.world.Complain("the line is not taken over");
    if (pool.Value() != (may_be_done ? "absent" : "0")) pool.play.world.Complain("the key is lost, or back");
    pool.second.GiveBack();
    pool.second.Now(pool.second.Put(K(), "1"));
    if (pool.Value() != "1") pool.play.world.Complain("the key is not put");
    return pool.End();
  });
}

std::string SlowClientMeetsASpareLine() {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    FullPool pool;
    Play& play = pool.play;
    pool.Fill();
    {
      Task<bool> dies = pool.first.Delete(K());
      dies.Start();
      play.world.Drive([&] { return play.At(0).is(Kind::kPending) || dies.done(); });
      play.world.fabric.Crash(pool.first.client().id());
    }
    pool.Kill(pool.first);
    play.LetPass(milliseconds(25));  // the others find that it is dead
    pool.TakeAll(pool.second);
    {
      Task<bool> update = pool.third.Update(K(), "of third");
      update.Start();
      for (uint64_t step = 0; step < steps && !update.done(); ++step) play.world.fabric.Step();
      more = !update.done();
      play.Stop(pool.third);
      // The line is taken over, and there is memory for a value, but not for a tombstone.
      const Result<bool> first_try = pool.second.Try(pool.second.Delete(At2()));
      pool.second.GiveBackOne(pool::kLine);
      pool.second.Now(pool.second.Put(K(), "of second"));
      pool.TakeAll(pool.second);
      Task<bool> deletes = pool.second.Delete(K());
      deletes.Start();
      play.world.Drive([&] { return play.At(0).is(Kind::kPending) || deletes.done(); });
      play.Stop(pool.second, milliseconds(8));
      play.world.Drive([&] { return update.done(); });
      play.world.Drive([&] { return deletes.done(); });
      for (Result<bool> end : {update.TakeResult(), deletes.TakeResult(), first_try}) {
        if (!end.ok() && end.error().code() != ErrorCode::kOutOfMemory)
          play.world.Complain(end.error().ToString());
      }
    }
    if (pool.Value() == "0") play.world.Complain("a value comes back");
    const std::string problem = pool.End();
    if (!problem.empty()) return fmt::format("one stops after {} steps: {}", steps, problem);
  }
  return "";
}

std::string DeleteIsDestroyedBehindItsEntry() {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    FullPool pool;
    Play& play = pool.play;
    pool.Fill();
    {
      Task<bool> lost = pool.first.Delete(K());
      lost.Start();
      play.world.Drive([&] { return play.At(0).is(Kind::kPending) || lost.done(); });
      for (uint64_t step = 0; step < steps && !lost.done(); ++step) play.world.fabric.Step();
      more = !lost.done();
    }
    play.LetPass(std::chrono::microseconds(50));  // what was posted takes effect
    const bool done = play.At(0).is(Kind::kEmpty);
    if (!done && !pool.Deletes(pool.first, K())) play.world.Complain("the spare line does not come back");
    if (pool.Value() != "absent") play.world.Complain("the key is not deleted");
    const std::string problem = pool.End();
    if (!problem.empty()) return fmt::format("destroyed after {} steps: {}", steps, problem);
  }
  return "";
}

}  // namespace farside::index::nessie
