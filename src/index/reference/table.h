// A reference table as one client has it open.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "index/index.h"
#include "index/kit/change.h"
#include "index/kit/changing_index.h"
#include "index/reference/image.h"
#include "index/reference/layout.h"
#include "index/reference/options.h"
#include "pool/client.h"

namespace farside::index::reference {

class Table final : public ChangingIndex<Table> {
 public:
  Table(const Options& options, pool::PoolClient& pool, std::vector<fabric::FarAddr> roots);

  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) override;
  Task<bool> Next(fabric::Op& op, Cursor& cursor, std::vector<Record>& page) override;
  Task<bool> Scan(fabric::Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) override;
  Task<bool> Last(fabric::Op& op, const KeyRange& range, Record& record) override;
  Task<TableStats> Stats(fabric::Op& op) override;
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach) override;
  Task<Done> Verify(fabric::Op& op) override;

 private:
  friend class ChangingIndex<Table>;
  struct KeyHome {
    fabric::FarAddr bucket;
    uint64_t hash = 0;
  };
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

  KeyHome HomeOf(std::string_view key) const;
  fabric::FarAddr BucketAt(size_t part, uint64_t bucket) const;

  Task<Changed> Modify(fabric::Op& op, Change change);
  Task<Changed> ModifyLocked(fabric::Op& op, const Change& change, KeyHome home, const Bucket& bucket,
                             uint64_t birth);
  Task<Bucket> ReadBucket(fabric::Op& op, fabric::FarAddr at);
  Task<std::optional<Match>> FindKey(fabric::Op& op, const Image& image, KeyHome home, std::string_view key);
  Task<Match> ReadMatch(fabric::Op& op, fabric::NodeId node, const Image& image, size_t entry);
  Task<std::vector<Match>> ReadRecords(fabric::Op& op, fabric::FarAddr at, const Image& image);
  Task<Done> VerifyBucket(fabric::Op& op, fabric::FarAddr at);
  Task<Done> Sift(fabric::Op& op, Sieve& sieve);
  Task<Bucket> Lock(fabric::Op& op, fabric::FarAddr at);
  Task<std::optional<Bucket>> TakeOver(fabric::Op& op, fabric::FarAddr at, Head held);
  Task<Done> GiveBack(fabric::Op& op, fabric::FarAddr at, const Bucket& bucket);
  Task<Done> Unlock(fabric::Op& op, fabric::FarAddr at, Head held);
  Task<Done> Commit(fabric::Op& op, fabric::FarAddr at, Head held, Image image, fabric::FarAddr block_at,
                    std::vector<std::byte> block);

  const Options options_;
  pool::PoolClient& pool_;
  const std::vector<fabric::FarAddr> roots_;
  std::vector<fabric::NodeId> nodes_;
};

}  // namespace farside::index::reference

extern template class farside::index::ChangingIndex<farside::index::reference::Table>;
