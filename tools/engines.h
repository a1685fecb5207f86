// The engines that this binary knows, by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "farside/result.h"
#include "index/index.h"

namespace farside::tools {

struct EngineEntry {
  std::string_view name;
  Result<std::shared_ptr<index::Engine>> (*make)(const index::OptionMap& options);
};

std::span<const EngineEntry> Engines();

// "reference, shard": for messages.
std::string EngineNames();

// kInvalidArgument, in one line, if there is no such engine or it has no such option.
Result<std::shared_ptr<index::Engine>> MakeEngine(std::string_view name, const index::OptionMap& options);

}  // namespace farside::tools
