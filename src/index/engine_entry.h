// How Farside finds an engine. The folder src/index/NAME of an engine has a file engine.cc, which defines
//
//   namespace farside::index::NAME { EngineEntry Register(); }
//
// CMake finds the folders that have this file and makes the list of entries (src/store/engine_list.cc.in), so
// that adding an engine changes no file outside of the engine's own folders.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/mutant.h"
#include "fabric/service.h"
#include "farside/result.h"
#include "index/index.h"

namespace farside::index {

struct EngineEntry {
  std::string_view name;
  // Place in lists, ascending; engines of the same rank stand in the order of their names. The first one is
  // the engine of tables that are made without naming one.
  int rank = 50;
  // kInvalidArgument, in one line, if the engine has no such option.
  Result<std::shared_ptr<Engine>> (*make)(const OptionMap& options) = nullptr;
  // Its planted bugs.
  std::span<const MutantName> mutants = {};
  // Names its handlers at memory nodes, if it has any.
  void (*serve)(fabric::CallTable& calls) = nullptr;
};

}  // namespace farside::index
