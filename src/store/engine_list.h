// The entries of the engines that are compiled in, in no order. For engines.cc.
#pragma once

#include <vector>

#include "index/engine_entry.h"

namespace farside::store {

std::vector<index::EngineEntry> EngineList();

}  // namespace farside::store
