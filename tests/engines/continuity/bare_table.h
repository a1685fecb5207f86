// A continuity table in bare memory, without a pool or a fabric: what a client does to it, by calling the
// handlers itself, and what a client finds in its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/service.h"
#include "farside/result.h"
#include "index/continuity/layout.h"
#include "index/continuity/request.h"
#include "index/kit/change.h"

namespace farside::index::continuity {

// Memory in which everything takes effect at once. The test ends at an access that leaves it.
class PlainMemory final : public fabric::NodeMemory {
 public:
  explicit PlainMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_.size(); }
  uint64_t Load(uint64_t offset) const override;
  void Store(uint64_t offset, uint64_t word) override;

 private:
  void Check(uint64_t offset) const;

  std::span<std::byte> bytes_;
};

inline constexpr uint64_t kBareRoot = 512;
inline constexpr uint64_t kBareTable = kBareRoot + sizeof(Root);

// A region that has an empty table, and behind it memory in which anything may stand.
std::vector<std::byte> EmptyTable(Shape shape, uint64_t bytes, uint64_t seed = 1);
// Where the free memory of such a region begins.
uint64_t FirstFree(Shape shape);

// What a client asks for.
struct BareChange {
  bool moves = false;  // nothing but that some pairs of a growing table are moved, by a Call of its own
  ChangeKind kind = ChangeKind::kPut;
  std::string key;
  std::string value;
  std::string expected;  // CompareAndSet
  uint64_t delta = 0;    // Increment
};

// Takes memory and never gives any back, but knows what of it belongs to the table.
class BareClient {
 public:
  // Memory of so many bytes which no client has taken before.
  using Take = std::function<uint64_t(fabric::NodeMemory& memory, uint64_t bytes)>;

  // Of an empty table in bare memory: takes what is behind its end.
  explicit BareClient(uint64_t first_free)
      : free_(first_free), linked_{{kBareTable, first_free - kBareTable}} {}
  // Of an empty table elsewhere.
  BareClient(uint64_t root, Memory table, Take take)
      : root_(root), take_(std::move(take)), linked_{{table.offset, table.bytes}} {}

  // Writes what does not fit into the request, and calls handlers until the change is decided; brings what
  // they say is missing.
  Result<Reply> Make(fabric::NodeMemory& memory, const BareChange& change);
  // Moves some pairs of a table that grows.
  Result<Reply> Move(fabric::NodeMemory& memory);
  // Until the table does not grow any more.
  Status EndGrowth(fabric::NodeMemory& memory);

  // What is wrong if the table uses this memory: all of it was linked by a handler and not unlinked since, or
  // is named by a Call that is under way. `at_rest`: none is, and then it is all that was linked.
  std::string Check(std::vector<Memory> used, bool at_rest) const;
  // After a power cut, or an outcome that is unknown: what the table uses is what is linked, and all else is
  // swept.
  void KeepOnly(const std::vector<Memory>& used);

  uint64_t free() const { return free_; }      // of bare memory
  uint64_t groups() const { return groups_; }  // that were linked
  uint64_t tables() const { return tables_; }

 private:
  Result<Reply> Call(fabric::NodeMemory& memory, fabric::CallId call, std::string_view request);
  Status Grow(fabric::NodeMemory& memory, uint64_t doublings);
  Memory TakeSome(fabric::NodeMemory& memory, uint64_t bytes);
  void Link(uint64_t offset);

  uint64_t root_ = kBareRoot;
  Take take_;
  uint64_t free_ = 0;
  std::map<uint64_t, uint64_t> linked_;                // bytes by offset
  std::map<uint64_t, uint64_t> offered_;               // taken for a change that is under way
  std::map<std::string, Memory, std::less<>> blocks_;  // of each key, as far as it is known: for touches
  uint64_t groups_ = 0;
  uint64_t tables_ = 0;
};

Result<std::string> CallHandler(fabric::NodeMemory& memory, fabric::CallId call, std::string_view request);

// What a table consists of, but for its root.
struct BareContent {
  std::vector<std::pair<std::string_view, std::string_view>> records;  // views of the region, ascending
  std::vector<Memory> used;                                            // tables, groups and blocks
};

// A moment of the table, as its clients see it.
struct BareView {
  std::span<const std::byte> bytes;
  bool live = false;  // a handler may be at work: what it changes under an odd sequence is not taken
  uint64_t root_at = kBareRoot;

  Root root() const;
  // An error if something is damaged, torn or there twice, or not to be had now. Of groups, one more may be
  // counted than there are: a power cut in the middle of adding it has left that.
  Result<BareContent> Content() const;
  // Its records alone.
  Result<std::vector<std::pair<std::string_view, std::string_view>>> Records() const;
  // The value of a key; kContended if its pair is being changed.
  Result<std::optional<std::string_view>> Find(std::string_view key) const;

 private:
  struct Pair {
    uint64_t at = 0;
    Indicator indicator;
    uint64_t group = 0;
  };
  uint64_t Load(uint64_t offset) const;
  bool Has(uint64_t offset, uint64_t size) const;
  Pair LoadPair(TableWord table, uint64_t number) const;
  Status AddPair(TableWord table, uint64_t number, BareContent& content) const;
  Status AddSlot(const Pair& pair, uint32_t slot, uint64_t number, TableWord table,
                 BareContent& content) const;
  Status CheckGroups(TableWord table, uint64_t groups) const;
};

// What the changes of a script make of each key, by themselves.
using BareModel = std::map<std::string, std::string, std::less<>>;
void ApplyTo(BareModel& model, const BareChange& change);

}  // namespace farside::index::continuity
