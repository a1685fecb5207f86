// `farside table`: makes, lists, shows and drops the tables of a pool.
//
// A command that fails leaves the file of the pool as it was, to the last byte. So what would change it is
// done to a copy first, which lives in the memory of the process and shares with the file what it does not
// change.
#pragma once

#include <cstdint>
#include <string>

#include "index/index.h"
#include "tools/common/exit_code.h"

namespace farside::tools {

struct TableCommand {
  enum class Verb : uint8_t { kCreate, kList, kShow, kDrop };

  Verb verb = Verb::kList;
  std::string url;
  std::string name;
  std::string engine;
  index::OptionMap options;
  bool json = false;
};

ExitCode Table(const TableCommand& command);

}  // namespace farside::tools
