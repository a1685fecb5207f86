// One run of fsck over one node: fsck.cc looks at the metadata, chunks.cc at the chunks and their blocks.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "pool/catalog/layout.h"
#include "pool/fsck/fsck.h"
#include "pool/memory/carving.h"

namespace farside::pool {

// ---- what findings advise
inline constexpr std::string_view kRestore = "restore the pool from an export";
inline constexpr std::string_view kDropTable = "export what can still be read of it, then drop the table";
inline constexpr std::string_view kNothingToDo = "nothing: it is put in order when it is needed";
inline constexpr std::string_view kSwept =
    "nothing: a sweep, which every client makes when another has died, finds it";
inline constexpr std::string_view kAdopted =
    "nothing: a client that stays for longer than the lease adopts it";

inline bool IsZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

class NodeCheck {
 public:
  NodeCheck(fabric::Op& op, fabric::NodeId node, const Geometry& geometry, const Reached& reached,
            const FsckOptions& options)
      : op_(op),
        node_(node),
        geometry_(geometry),
        reached_(reached),
        options_(options),
        carving_(node, geometry) {}

  static std::string ProblemWith(const Geometry& geometry, uint64_t region_bytes);

  Task<FsckReport> Run();

 private:
  using Mark = Reached::Entry;

  // What is known of a client that is named as an owner.
  enum class Fate : uint8_t {
    kNoOwner,  // no owner is named
    kAlive,
    kDead,      // fenced, or known to be dead: will be adopted
    kGone,      // its registration is over: no client will look for what it owned
    kNonsense,  // names no client
  };

  static std::string NameOf(Owner owner);
  fabric::FarAddr At(uint64_t offset) const { return fabric::FarAddr(node_, offset); }
  uint64_t region_bytes() const { return *fabric::ForNode(op_.client().region_bytes(), node_); }
  void Damage(fabric::FarAddr where, std::string what, std::string_view advice) {
    report_.Add(Severity::kDamage, where, std::move(what), std::string(advice));
  }
  void Leak(fabric::FarAddr where, std::string what, std::string_view advice) {
    report_.Add(Severity::kLeak, where, std::move(what), std::string(advice));
  }
  void Note(fabric::FarAddr where, std::string what, std::string_view advice) {
    report_.Add(Severity::kNote, where, std::move(what), std::string(advice));
  }

  Task<std::vector<std::byte>> ReadRange(uint64_t begin, uint64_t end);
  // A part of the metadata that consists of `count` objects, and what is behind them up to `end`.
  template <class T>
  Task<std::vector<T>> ReadTable(uint64_t begin, uint64_t count, uint64_t end, std::string_view name);

  Task<Done> CheckHead();
  Task<Done> CheckRegistry();
  void CheckClient(uint32_t slot, const ClientSlot& client);
  Task<Done> CheckCatalog();
  void CheckHalfMade(const TableEntry& entry, fabric::FarAddr at);
  Fate FateOf(Owner owner) const;
  void CheckLock();

  void SortMarks();
  std::span<const Mark* const> MarksIn(uint64_t chunk);
  Task<Done> CheckChunks();
  void CheckChunk(uint32_t chunk, std::span<const uint64_t> bitmap);
  void CheckChunkOfBlocks(uint32_t chunk, ChunkWord word, std::span<const uint64_t> bitmap);
  std::vector<bool> LocateMarks(uint32_t chunk, ChunkWord word);
  void CheckExtent(uint32_t head, ChunkWord word);
  bool IsPartOfExtent(uint32_t chunk) const;
  void CheckOwner(uint32_t chunk, ChunkWord word);
  void ComplainOfMarks(std::span<const Mark* const> marks, std::string_view where);
  void NoteReachedAgain(const Mark& first, const Mark& again);
  // Where unreachable memory is counted, given its owner; null if it is leaked.
  uint64_t* Unreachable(Fate owner);
  Task<Done> CheckBlocks();

  fabric::Op& op_;
  const fabric::NodeId node_;
  const Geometry geometry_;
  const Reached& reached_;
  const FsckOptions options_;
  const Carving carving_;
  FsckReport report_;

  uint64_t epoch_ = 0;
  LockWord lock_;
  std::vector<ClientSlot> clients_;
  bool other_clients_live_ = false;  // besides the checking client
  bool clients_died_ = false;
  std::vector<ChunkWord> words_;
  std::vector<const Mark*> marks_;   // on this node, by address
  size_t next_mark_ = 0;             // the first one in the chunks that have not been checked yet
  std::vector<const Mark*> blocks_;  // whose bytes are to be checked
};

template <class T>
Task<std::vector<T>> NodeCheck::ReadTable(uint64_t begin, uint64_t count, uint64_t end,
                                          std::string_view name) {
  const std::vector<std::byte> bytes = co_await ReadRange(begin, end);
  std::vector<T> table(count);
  std::memcpy(table.data(), bytes.data(), count * sizeof(T));
  if (!IsZero(std::span(bytes).subspan(count * sizeof(T)))) {
    Damage(At(begin + count * sizeof(T)),
           fmt::format("there are bits behind the {}, where none are used", name), kRestore);
  }
  co_return table;
}

}  // namespace farside::pool
