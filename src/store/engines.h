// The engines that are compiled in, by name. The library, the tools and the tests all ask here.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fabric/service.h"
#include "farside/result.h"
#include "index/engine_entry.h"
#include "index/index.h"

namespace farside::store {

using index::EngineEntry;

// Every engine, by rank; also engines that keep no records.
std::span<const EngineEntry> AllEngines();
// The engines that users make tables with, by rank: all that keep records.
std::span<const EngineEntry> Engines();

// False: the engine of this name only measures the fabric. True if there is no such engine.
bool KeepsRecords(std::string_view name);

// The engine of tables that are made without naming one.
std::string_view DefaultEngine();

// "shard, chime, sephash, nessie, continuity, reference": for messages.
std::string EngineNames();
// The same with the engines that only measure the fabric behind them.
std::string AllEngineNames();

// Whether tables of the engine with these options keep their keys in order. False if there is no such engine.
bool IsOrdered(std::string_view name, const index::OptionMap& options);
// "chime, reference": the engines that do so with their default options.
std::string OrderedEngineNames();

// The engines that make tables in durable pools. Empty: there is none.
std::string DurableEngineNames();

// Names the handlers of a node: those of the pool and of every engine. For whatever opens or serves a region,
// before its first client comes.
void RegisterHandlers(fabric::CallTable& calls);

// kInvalidArgument, in one line, if there is no such engine or it has no such option.
Result<std::shared_ptr<index::Engine>> MakeEngine(std::string_view name, const index::OptionMap& options);

}  // namespace farside::store
