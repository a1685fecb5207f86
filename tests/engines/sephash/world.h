// Clients that have one sephash table open in a simulated pool, the table as it stands in memory, keys for
// scenarios, and histories of what clients did.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "check/history.h"
#include "fabric/op.h"
#include "index/sephash/look.h"
#include "index/sephash/sephash.h"
#include "index/sephash/table.h"
#include "pool/memory/reach.h"
#include "tests/support/in_flight.h"
#include "tests/support/table_world.h"

namespace farside::index::sephash {

using fabric::sim::FaultKind;

class World : public TableWorld {
 public:
  using TableWorld::TableWorld;

  std::vector<fabric::FarAddr> roots;
};

class Member : public TableMember {
 public:
  Member(World& world, const OptionMap& options)
      : TableMember(world, "sephash", MakeSephashEngine, options), options_(*Options::Parse(options)) {
    if (world.problem.empty()) world.roots = roots();
  }

  const MergeCounts& merge_counts() { return static_cast<Table&>(index()).merge_counts(); }
  const Options& options() const { return options_; }

  // Memory of the first node that no table has, until it is given back.
  Task<Done> Hold(uint64_t bytes) {
    fabric::Op op(client(), fabric::OpKind::kMaintenance);
    const fabric::FarAddr at = co_await pool().allocator(fabric::NodeId{0}).Allocate(op, bytes);
    held_.emplace_back(at, bytes);
    co_return Done{};
  }
  void GiveBack() {
    for (const auto& [at, bytes] : held_) pool().allocator(fabric::NodeId{0}).FreeUnpublished(at, bytes);
    held_.clear();
  }
  // Everything of the table that is reachable.
  Task<Done> WalkTable(pool::Reach& reach) {
    fabric::Op op(client(), fabric::OpKind::kMaintenance);
    co_await index().Walk(op, reach);
    co_return Done{};
  }

 private:
  const Options options_;
  std::vector<std::pair<fabric::FarAddr, uint64_t>> held_;
};

// What Stats says under a name; -1 if it does not say anything.
double DetailOf(const TableStats& stats, std::string_view name);

// ---- the table as it stands in memory, on the first node -------------------------------------------------

class Image {
 public:
  Image(const World& world, const Shape& shape)
      : memory_(world.memory()), root_(world.roots[0].offset), shape_(shape) {}

  Root root() const { return At<Root>(root_); }
  // Of the CurSegment that the directory names at this suffix; 0: none.
  uint64_t SegmentAt(uint64_t suffix) const {
    const size_t part = shape_.PartOf(suffix);
    if (root().parts[part] == 0) return 0;
    return At<uint64_t>(root().parts[part] + (suffix - shape_.FirstOfPart(part)) * sizeof(uint64_t));
  }
  MetaWord MetaAt(uint64_t suffix) const { return At<MetaWord>(SegmentAt(suffix)); }
  MainHeader MainAt(uint64_t suffix) const { return At<MainHeader>(MetaAt(suffix).main()); }
  Entry EntryIn(uint64_t suffix, uint64_t slot) const {
    return At<Entry>(SegmentAt(suffix) + offsetof(SegmentImage, entries) + slot * sizeof(Entry));
  }

  template <class T>
  T At(uint64_t offset) const {
    T read;
    std::memcpy(static_cast<void*>(&read), memory_.data() + offset, sizeof read);
    return read;
  }

 private:
  std::span<const std::byte> memory_;
  uint64_t root_;
  Shape shape_;
};

// ---- keys for scenarios ----------------------------------------------------------------------------------

inline uint64_t HashOf(std::string_view key) { return Hash64(AsBytes(key)); }
// The n-th of the keys "k0", "k1" ... for whose hash `fits` holds.
std::string KeyFor(const std::function<bool(uint64_t)>& fits, int nth = 0);
// The n-th key whose hash ends with these bits.
std::string KeyOf(uint64_t suffix, uint32_t bits, int nth = 0);
// What tells keys apart in entries of the first group: hashes that agree in it have the same tag there,
// however many depth bits there are.
inline uint64_t TagBitsOf(uint64_t hash) {
  return hash >> (64 - kFingerprintBits) << 2 * kMostDepthBits | (hash & LowBits(2 * kMostDepthBits));
}
// So many keys with the same tag.
std::vector<std::string> KeysWithOneTag(size_t count);

// ---- histories -------------------------------------------------------------------------------------------

using check::Kind;
using in_flight::Request;

inline Request Put(std::string key, std::string value) {
  return {Kind::kPut, std::move(key), std::move(value), ""};
}
inline Request Insert(std::string key, std::string value) {
  return {Kind::kInsert, std::move(key), std::move(value), ""};
}
inline Request Update(std::string key, std::string value) {
  return {Kind::kUpdate, std::move(key), std::move(value), ""};
}
inline Request Delete(std::string key) { return {Kind::kDelete, std::move(key), "", ""}; }
inline Request Get(std::string key) { return {Kind::kGet, std::move(key), "", ""}; }

// Clients of one table, and everything that they have asked and were told.
class Play {
 public:
  explicit Play(OptionMap table, const WorldOptions& options = {})
      : world(options), table_(std::move(table)) {}
  ~Play() { tasks_.clear(); }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

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
  // Whether all that was begun has ended, or its client is dead.
  bool over() const;
  void Finish();
  // The client dies at the n-th verb of the request. False: there are no so many.
  bool DieAt(Member& member, uint64_t verb, FaultKind kind, const Request& request);

  const Options options() const { return *Options::Parse(table_); }
  Image image() const { return {world, options().shape}; }

  // Every key is read by every client; then all leave but a new one, which looks whether the history can be
  // explained, the cursor has every key once, and the table and every byte are in order. What went wrong, or
  // nothing.
  std::string End();

  World world;

 private:
  int NumberOf(const Member& member) const;

  OptionMap table_;
  check::History history_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::pair<Member*, Task<Done>>> tasks_;
  std::map<std::string, bool> keys_;
  std::map<const Member*, int> numbers_;
  int last_number_ = 0;
};

}  // namespace farside::index::sephash
