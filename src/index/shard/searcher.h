// The parts of a search that take a coroutine of their own. The first look at the bucket is Table::Get
// itself.
#pragma once

#include <cstdint>
#include <string>

#include "farside/task.h"
#include "index/shard/context.h"
#include "index/shard/location_cache.h"
#include "index/shard/splitter.h"
#include "index/shard/unit_reader.h"
#include "index/shard/view_reader.h"
#include "pool/client.h"

namespace farside::index::shard {

class Searcher {
 public:
  Searcher(pool::PoolClient& pool, UnitReader& units, ViewReader& views, Splitter& splitter,
           LocationCache& locations)
      : pool_(pool), units_(units), views_(views), splitter_(splitter), locations_(locations) {}

  // One attempt, wherever the key's bucket has come to.
  Task<bool> TrySearch(SearchContext& context);
  // In levels 2 and 3.
  Task<bool> SearchOverflow(const KeyAccess& at, std::string& value, const pool::PoolClient::Pin& pin);
  // Where the key was seen. False: it is not there any more, and may be elsewhere.
  Task<bool> SearchLocation(const KeyAccess& at, Location known, std::string& value,
                            const pool::PoolClient::Pin& pin);

 private:
  pool::PoolClient& pool_;
  UnitReader& units_;
  ViewReader& views_;
  Splitter& splitter_;
  LocationCache& locations_;
};

}  // namespace farside::index::shard
