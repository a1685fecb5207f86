// The nessie table: a cuckoo hash table in far memory without locks, after "Designing A Low-Latency Cuckoo
// Hash Table for Write-Intensive Workloads Using RDMA" (Szepesi, Wong, Cassell and Brecht, 2014). A search
// takes two trips, a put of a new key two; clients migrate keys themselves; the table grows without stopping
// any client. See docs/engines/nessie.md.
//
// Invariants
//   nessie/1  (mover.h) A migration copies; the copy counts only if the source was unchanged behind its
//             claim, and the source is cleared only when the copy counts.
//   nessie/2  (committer.h) Of two copies of a key, only the source is removed; without a pending entry, only
//             if both words were read again and are equal.
//   nessie/3  (committer.h) A pending entry commits only if its writer has looked at all other slots of the
//             key behind it.
//   nessie/4  (committer.h) Of two fresh entries, the one in the secondary slot gives way.
//   nessie/5  The entry of a writer that is gone is always taken back, never finished; gone means fenced, or
//             destroyed, for the client whose operation it was (running_entries.h).
//   nessie/6  (committer.h) Only its writer touches the entry of a live writer.
//   nessie/7  No word comes back to a slot while an operation may compare it: words that name an item are
//             protected by pins, empty words and marks are tokens that occur once. Two words do come back,
//             and say what was the case all the time: a live one, when the entry that was to replace it is
//             taken back; and unsplit, when a mark is taken away.
//   nessie/8  (splitter.h) A slot is put to use only when nothing of its keys changes, and stays so for ever.
//   nessie/9  (partition.h) Slots are put to use only when every operation in flight knows of them: growth/1.
//   nessie/10 (cleaner.h) The client whose CAS unlinks an item retires it.
//   nessie/11 (move_log.h) A key that moves to a lower slot is entered in the move log first.
//   nessie/12 (walker.cc) What a cursor says of slots that it reads together it says of words that were read
//             twice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/nessie/layout.h"
#include "index/nessie/options.h"
#include "pool/client.h"

namespace farside::index::nessie {

class NessieEngine final : public Engine {
 public:
  explicit NessieEngine(const Options& options) : options_(options) {}

  std::string_view name() const override { return "nessie"; }
  Traits traits() const override { return {.read_only_walk = true, .grows_by_nodes = true}; }
  uint32_t layout_version() const override { return kLayoutVersion; }
  uint64_t empty_bytes() const override;
  OptionMap recorded_options() const override { return options_.Recorded(); }
  std::vector<OptionMap> stress_options() const override;
  Task<std::vector<fabric::FarAddr>> Create(fabric::Op& op, pool::PoolClient& pool,
                                            std::vector<fabric::NodeId> nodes) override;
  std::unique_ptr<Index> Open(pool::PoolClient& pool, std::vector<fabric::FarAddr> roots) override;
  std::string Describe(fabric::FarAddr at, std::span<const fabric::FarAddr> roots) const override;

 private:
  const Options options_;
};

Result<std::shared_ptr<Engine>> MakeNessieEngine(const OptionMap& options);

}  // namespace farside::index::nessie
