#include "store/engines.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/bytes.h"
#include "index/chime/chime.h"
#include "index/raw/raw.h"
#include "index/reference/reference.h"
#include "index/shard/shard.h"

namespace farside::store {
namespace {

// A new engine is one line here. The first one is the default.
constexpr std::array kEngines = {
    EngineEntry{"shard", index::shard::MakeShardEngine},
    EngineEntry{"chime", index::chime::MakeChimeEngine},
    EngineEntry{"reference", index::reference::MakeReferenceEngine},
};

// Keeps nothing, so no list has it: for `farside bench`, which knows its name.
constexpr EngineEntry kRaw{"raw", index::raw::MakeRawEngine};

// "a, b": those for which the predicate holds.
template <class Predicate>
std::string NamesOf(Predicate holds) {
  std::string names;
  for (const EngineEntry& engine : kEngines) {
    if (holds(engine)) names += fmt::format("{}{}", names.empty() ? "" : ", ", engine.name);
  }
  return names;
}

}  // namespace

std::span<const EngineEntry> Engines() { return kEngines; }

std::string_view DefaultEngine() { return kEngines.front().name; }

std::string EngineNames() {
  return NamesOf([](const EngineEntry&) { return true; });
}

bool IsOrdered(std::string_view name, const index::OptionMap& options) {
  const Result<std::shared_ptr<index::Engine>> engine = MakeEngine(name, options);
  return engine.ok() && (*engine)->ordered();
}

std::string OrderedEngineNames() {
  return NamesOf([](const EngineEntry& engine) { return IsOrdered(engine.name, {}); });
}

Result<std::shared_ptr<index::Engine>> MakeEngine(std::string_view name, const index::OptionMap& options) {
  if (name == kRaw.name) return kRaw.make(options);
  const auto known = std::find_if(kEngines.begin(), kEngines.end(),
                                  [name](const EngineEntry& engine) { return engine.name == name; });
  if (known == kEngines.end()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("there is no engine '{}'; there is: {}", Escape(name), EngineNames()));
  }
  return known->make(options);
}

}  // namespace farside::store
