// The lines of a node that are not durable yet, each with the versions it has had since it was last durable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fabric/address.h"

namespace farside::check {

using LineWords = std::array<uint64_t, fabric::kLineBytes / sizeof(uint64_t)>;

class PendingLines {
 public:
  // A word is about to become another one; `visible` has the one of before.
  void Store(std::span<const std::byte> visible, uint64_t offset, uint64_t word);
  // Whole lines.
  void Flush(uint64_t offset, uint64_t size);
  void Drain();

  struct Line {
    std::vector<LineWords> versions;  // the durable one first, the visible one last; neighbours differ
    size_t flushed = 0;               // the version that the next drain makes durable
  };
  // By offset.
  const std::map<uint64_t, Line>& lines() const { return lines_; }

 private:
  std::map<uint64_t, Line> lines_;
};

}  // namespace farside::check
