// What every engine implements: a table of byte strings, as one client sees it.
//
// An Index belongs to one fabric client; it holds that client's caches and no truth. Keys and values are
// byte strings; arguments are views that stay alive until the task has ended. A missing key is a value,
// never an error. Every operation says through `op.End` what it turned out to be.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "fabric/client.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"

namespace farside::index {

class Index {
 public:
  virtual ~Index() = default;

  // True and `value` if the key is present.
  virtual Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) = 0;
  // Upsert. True: the key was absent before.
  virtual Task<bool> Put(fabric::Op& op, std::string_view key, std::string_view value) = 0;
  // Only if absent. False: it was there and is unchanged.
  virtual Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) = 0;
  // Only if present. False: it is not there.
  virtual Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) = 0;
  // False: there was nothing to delete.
  virtual Task<bool> Delete(fabric::Op& op, std::string_view key) = 0;
  // Only if present with exactly `expected`. False: it is absent or differs.
  virtual Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                                   std::string_view desired) = 0;
  // Adds to an 8-byte little-endian counter; absent counts as 0. Returns the new value.
  virtual Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) = 0;

  // Walks the whole table while nobody changes it and fails with kCorrupt at the first broken invariant.
  virtual Task<Done> Verify(fabric::Op& op) = 0;
};

// Options as the user gives them, `k=v`.
using OptionMap = std::map<std::string, std::string, std::less<>>;

// An engine with its options fixed: makes tables and opens them.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  // The size of a region that a table of this engine fits in.
  virtual uint64_t region_bytes() const = 0;
  // Makes an empty table in fresh (zeroed) memory. Before anybody opens it.
  virtual Task<Done> Format(fabric::Op& op) = 0;
  // The view of one client, which must outlive it.
  virtual std::unique_ptr<Index> Open(fabric::Client& client) = 0;
  // What lies at this address, for traces: "bucket 3 head". Empty if it does not know.
  virtual std::string Describe(fabric::FarAddr at) const = 0;
};

}  // namespace farside::index
