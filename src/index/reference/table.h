// A reference table as one client has it open.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/kit/keyed_index.h"
#include "index/reference/context.h"
#include "index/reference/image.h"
#include "index/reference/layout.h"
#include "index/reference/options.h"
#include "pool/client.h"

namespace farside::index::reference {

class Table final : public KeyedIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, std::vector<fabric::FarAddr> roots);

  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override;
  Task<bool> Scan(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) override;
  Task<bool> Last(fabric::Op& op, const KeyRange& range, Record& record) override;
  Task<TableStats> Stats(fabric::Op& op) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override;
  Task<Done> Verify(fabric::Op& op) override;

 private:
  friend class KeyedIndex<Table>;
  // An entry of an image, and what stands in the block that it points to.
  struct Match {
    size_t entry = 0;
    uint64_t block_bytes = 0;
    Record record;
  };
  // What a look through the whole table keeps of it: the few first or last keys of a range.
  struct Sieve {
    enum class End : uint8_t { kFirst, kLast };

    const KeyRange& range;
    const End end;
    const size_t most;
    std::map<std::string, std::string, std::less<>> kept = {};

    void Add(const Record& record);
  };

  // For the driver of operations (kit/keyed_index.h).
  SearchContext ContextOf(fabric::Op& op, std::string_view key, std::string& value);
  ChangeContext ContextOf(fabric::Op& op, Change& change);
  Task<bool> TrySearch(SearchContext& context);
  Task<Attempt> TryChange(ChangeContext& context);

  fabric::FarAddr BucketAt(size_t part, uint64_t bucket) const;
  fabric::FarAddr BucketOf(uint64_t hash) const;

  // ---- search.cc
  Task<Bucket> ReadBucket(fabric::Op& op, fabric::FarAddr at);
  Task<Match> ReadMatch(fabric::Op& op, fabric::NodeId node, const Image& image, size_t entry);
  Task<std::optional<Match>> FindKey(fabric::Op& op, fabric::NodeId node, const Image& image, uint64_t hash,
                                     std::string_view key);
  // ---- change.cc
  Task<Done> ChangeLocked(ChangeContext& context, const Bucket& bucket);
  Task<Done> Commit(fabric::Op& op, fabric::FarAddr at, Head held, Image image, Draft& draft);
  // ---- lock.cc
  Task<Bucket> Lock(fabric::Op& op, fabric::FarAddr at);
  Task<Bucket> TakeOver(fabric::Op& op, fabric::FarAddr at, Head held);
  Task<Done> GiveBack(fabric::Op& op, fabric::FarAddr at, const Bucket& bucket);
  Task<Done> Unlock(fabric::Op& op, fabric::FarAddr at, Head held);
  // ---- walk.cc, scan.cc
  Task<std::vector<Match>> ReadRecords(fabric::Op& op, fabric::FarAddr at, const Image& image);
  Task<Done> VerifyBucket(fabric::Op& op, fabric::FarAddr at);
  Task<Done> Sift(fabric::Op& op, Sieve& sieve);

  const Options options_;
  const std::vector<fabric::FarAddr> roots_;
  std::vector<fabric::NodeId> nodes_;
};

}  // namespace farside::index::reference

extern template class farside::index::KeyedIndex<farside::index::reference::Table>;
