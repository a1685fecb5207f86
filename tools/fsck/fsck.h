// `farside fsck`: walks every table of a pool, and says what every byte of it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "farside/result.h"
#include "pool/fsck/fsck.h"
#include "tools/common/exit_code.h"
#include "tools/common/measure.h"

namespace farside::tools {

struct FsckCommand {
  std::string url;
  bool json = false;
};

// A table of the catalog.
struct CheckedTable {
  std::string name;
  std::string engine;
  std::optional<TableSize> size;  // if it was walked to its end
  std::string why;                // if not
};

struct PoolReport {
  std::vector<CheckedTable> tables;  // those whose catalog entry can be read
  // Every table was walked to its end, so that what was not reached is leaked.
  bool complete = true;
  std::vector<pool::FsckReport> nodes;

  // Of all nodes.
  uint64_t notes() const;
  uint64_t leaks() const;
  uint64_t damages() const;
  pool::FsckBytes bytes() const;

  // Nothing is leaked or damaged, and everything was looked at.
  bool ok() const { return complete && leaks() == 0 && damages() == 0; }
};

// Checks a pool, of which nothing is changed. Whatever its bytes are, the answer is a report, unless it
// cannot be opened.
Result<PoolReport> CheckPool(std::string_view url);

ExitCode Fsck(const FsckCommand& command);

}  // namespace farside::tools
