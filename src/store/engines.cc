#include "store/engines.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "pool/durability.h"
#include "store/engine_list.h"

namespace farside::store {
namespace {

bool EntryKeepsRecords(const EngineEntry& entry) {
  const Result<std::shared_ptr<index::Engine>> engine = entry.make({});
  return engine.ok() && (*engine)->traits().keeps_records;
}

// The engines that keep records first, so that Engines() is the beginning of AllEngines().
struct SortedEngines {
  std::vector<EngineEntry> all = EngineList();
  size_t keep_records = 0;

  SortedEngines() {
    std::ranges::sort(all, {}, [](const EngineEntry& entry) { return std::tuple(entry.rank, entry.name); });
    const auto others = std::ranges::stable_partition(all, EntryKeepsRecords);
    keep_records = all.size() - others.size();
  }
};

const SortedEngines& Sorted() {
  static const SortedEngines sorted;
  return sorted;
}

// "a, b".
template <class Entries>
std::string NamesOf(const Entries& entries) {
  std::string names;
  for (const EngineEntry& engine : entries)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", engine.name);
  return names;
}

}  // namespace

std::span<const EngineEntry> AllEngines() { return Sorted().all; }

std::span<const EngineEntry> Engines() { return AllEngines().first(Sorted().keep_records); }

bool KeepsRecords(std::string_view name) {
  const std::span<const EngineEntry> others = AllEngines().subspan(Engines().size());
  return std::ranges::find(others, name, &EngineEntry::name) == others.end();
}

std::string_view DefaultEngine() { return Engines().front().name; }

std::string EngineNames() { return NamesOf(Engines()); }

std::string AllEngineNames() { return NamesOf(AllEngines()); }

bool IsOrdered(std::string_view name, const index::OptionMap& options) {
  const Result<std::shared_ptr<index::Engine>> engine = MakeEngine(name, options);
  return engine.ok() && (*engine)->traits().ordered;
}

std::string OrderedEngineNames() {
  std::vector<EngineEntry> ordered;
  std::ranges::copy_if(Engines(), std::back_inserter(ordered),
                       [](const EngineEntry& engine) { return IsOrdered(engine.name, {}); });
  return NamesOf(ordered);
}

std::string DurableEngineNames() {
  std::vector<EngineEntry> durable;
  std::ranges::copy_if(Engines(), std::back_inserter(durable), [](const EngineEntry& entry) {
    const Result<std::shared_ptr<index::Engine>> engine = entry.make({});
    return engine.ok() && (*engine)->traits().durable;
  });
  return NamesOf(durable);
}

void RegisterHandlers(fabric::CallTable& calls) {
  pool::ServeDurability(calls);
  for (const EngineEntry& engine : AllEngines()) {
    if (engine.serve != nullptr) engine.serve(calls);
  }
}

Result<std::shared_ptr<index::Engine>> MakeEngine(std::string_view name, const index::OptionMap& options) {
  const auto known = std::ranges::find(AllEngines(), name, &EngineEntry::name);
  if (known == AllEngines().end()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("there is no engine '{}'; there is: {}", Escape(name), EngineNames()));
  }
  return known->make(options);
}

}  // namespace farside::store
