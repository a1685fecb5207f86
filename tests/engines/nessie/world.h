// Clients that have one nessie table open in a simulated pool, moved by hand: which of them knows of which
// growth, stops where, and dies where. The slots as they stand in memory, keys for scenarios, and histories
// of what clients did.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "check/history.h"
#include "fabric/op.h"
#include "index/nessie/item.h"
#include "index/nessie/nessie.h"
#include "tests/support/in_flight.h"
#include "tests/support/table_world.h"

namespace farside::index::nessie {

using fabric::sim::FaultKind;

class World : public TableWorld {
 public:
  using TableWorld::TableWorld;

  StateWord state() const { return StateWord(LoadU64(memory().data() + roots[0].offset)); }

  std::vector<fabric::FarAddr> roots;
};

class Member : public TableMember {
 public:
  Member(World& world, const OptionMap& options) : TableMember(world, "nessie", MakeNessieEngine, options) {
    if (world.problem.empty()) world.roots = roots();
  }

  // Publishes and reads the root's line, and nothing else: what waits for a grace goes on waiting.
  Task<Done> Sync() {
    fabric::Op op(client(), fabric::OpKind::kMaintenance);
    co_await pool().Sync(op, false);
    co_return Done{};
  }

  // Takes memory away that items could have.
  Task<Done> Hold(uint64_t bytes) {
    fabric::Op op(client(), fabric::OpKind::kMaintenance);
    const fabric::FarAddr at =
        co_await pool().allocator(fabric::NodeId{0}).Allocate(op, bytes, pool::BlockUse::kRecords);
    held_.emplace_back(at, bytes);
    co_return Done{};
  }
  void GiveBackOne(uint64_t bytes) {
    const auto of_size = [bytes](const auto& held) { return held.second == bytes; };
    const auto held = std::find_if(held_.begin(), held_.end(), of_size);
    if (held == held_.end()) return;
    pool().allocator(fabric::NodeId{0}).FreeUnpublished(held->first, bytes);
    held_.erase(held);
  }
  void GiveBack() {
    for (const auto& [at, bytes] : held_) pool().allocator(fabric::NodeId{0}).FreeUnpublished(at, bytes);
    held_.clear();
  }

 private:
  std::vector<std::pair<fabric::FarAddr, uint64_t>> held_;
};

// "a key comes back" as part of a test's name.
std::string NameOf(const std::string& what);

// ---- keys for scenarios ----------------------------------------------------------------------------------

inline KeyHash HashOf(std::string_view key) { return KeyHash(Hash64(AsBytes(key))); }
// The n-th of the keys "k0", "k1" ... for whose hash `fits` holds.
std::string KeyFor(const std::function<bool(const KeyHash&)>& fits, int nth = 0);
// Where a key stands in a table that began with four slots, when it has grown to `version`.
struct Places {
  uint64_t primary = 0;
  uint64_t secondary = 1;
  uint32_t version = 1;
};
inline constexpr Shape kFourSlots{.initial_bits = 2};
std::string KeyAt(const Places& places, int nth = 0);
// A key with the same tag as `key`, and one slot in common with it.
std::string KeyWithTheTagOf(const std::string& key);

// ---- histories -------------------------------------------------------------------------------------------

using in_flight::Request;

inline Request Put(std::string key, std::string value) {
  return {check::Kind::kPut, std::move(key), std::move(value), ""};
}
inline Request Insert(std::string key, std::string value) {
  return {check::Kind::kInsert, std::move(key), std::move(value), ""};
}
inline Request Update(std::string key, std::string value) {
  return {check::Kind::kUpdate, std::move(key), std::move(value), ""};
}
inline Request CompareAndSet(std::string key, std::string expected, std::string value) {
  return {check::Kind::kCompareAndSet, std::move(key), std::move(value), std::move(expected)};
}
inline Request Delete(std::string key) { return {check::Kind::kDelete, std::move(key), "", ""}; }
inline Request Get(std::string key) { return {check::Kind::kGet, std::move(key), "", ""}; }

// Clients of one table, and everything that they have asked and were told.
class Play {
 public:
  // Four slots, and a table that grows only if it is told to, or if a key finds no place.
  explicit Play(const OptionMap& own = {}, const WorldOptions& options = {});
  ~Play() {
    tasks_.clear();
    upkeep_.clear();
  }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  // It knows the table as it is.
  Member& Enter(const OptionMap& own = {});
  // It is dead, if it was not before.
  void Kill(Member& member);

  // From the call to the answer.
  void Do(Member& member, const Request& request);
  void DoAll(Member& member, const std::vector<Request>& requests) {
    for (const Request& request : requests) Do(member, request);
  }
  // The call; the world takes this many steps at most.
  void Begin(Member& member, const Request& request, uint64_t steps = 0);
  // Requests of one client, one after the other.
  void BeginAll(Member& member, const std::vector<Request>& requests, uint64_t steps = 0);
  // The call; the world goes on until `there` holds. False: it never does.
  bool BeginUntil(Member& member, const Request& request, const std::function<bool()>& there);
  // The client stops for so long, and what it has posted takes effect meanwhile.
  void Stop(Member& member, Nanos duration = std::chrono::milliseconds(4)) {
    world.fabric.Sleep(member.client().id(), duration);
  }
  // Whether all that was begun has ended, or its client is dead.
  bool over() const;
  // What this client has begun has ended.
  bool OverOf(const Member& member) const;
  void Finish();
  void FinishOf(const Member& member);
  void LetPass(Nanos time);
  // The client dies at the n-th verb of the request. False: there are no so many.
  bool DieAt(Member& member, uint64_t verb, FaultKind kind, const Request& request);

  // ---- growth, by a client of its own; the table must have a record
  // The next version is announced. Clients that `listen` have read that; the others know nothing of it.
  void Announce(const std::vector<Member*>& listen);
  // What was announced counts. Clients that are here have published that they know of the announcement, and
  // know no more.
  void Activate();
  void Learn(Member& member);
  // All clients know the next version.
  void Grow();

  // ---- the table as it stands in memory
  const Shape& shape() const { return shape_; }
  Word At(uint64_t slot) const;
  // As if a client had done that by a CAS.
  void Set(uint64_t slot, Word word);
  // Whether the slot has an item of the key, of this kind.
  bool Has(uint64_t slot, Kind kind, const std::string& key) const;
  uint64_t EffectiveSlotOf(const KeyHash& hash, Candidate candidate) const;
  // Whether one of the slots in which the key may stand has a pending entry, of whatever key; or one on the
  // way from there to an empty slot.
  bool HasPending(const std::string& key, bool on_the_way) const;

  // If no client has died, no slot has anything unfinished. Every key is read by every client; then all leave
  // but a new one, which looks whether the history can be explained, the cursor has every key once, and the
  // table and every byte are in order. What went wrong, or nothing.
  std::string End();

  World world;

 private:
  int NumberOf(const Member& member) const { return numbers_.at(&member); }
  void Drive(const std::function<bool()>& over);
  Task<Done> RecordAll(Member& member, std::vector<Request> requests);
  void PauseAfter(int round);
  // Null: the table has no such slot yet.
  std::byte* AddressOf(uint64_t slot) const;
  void CheckSlots();

  OptionMap table_;
  const Shape shape_;
  check::History history_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::pair<Member*, Task<Done>>> tasks_;
  std::map<const Member*, std::optional<Task<Done>>> upkeep_;
  Nanos last_upkeep_{0};
  std::map<std::string, bool> keys_;
  std::map<const Member*, int> numbers_;
  int last_number_ = 0;
  Member* grower_ = nullptr;
  bool dead_ = false;  // a client died
};

}  // namespace farside::index::nessie
