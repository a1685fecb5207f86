#include "check/power/pending_lines.h"

#include <cstring>

namespace farside::check {

void PendingLines::Store(std::span<const std::byte> visible, uint64_t offset, uint64_t word) {
  const uint64_t at = offset / fabric::kLineBytes * fabric::kLineBytes;
  LineWords now;
  std::memcpy(now.data(), visible.data() + at, sizeof now);
  uint64_t& changed = now[(offset - at) / sizeof(uint64_t)];
  if (changed == word) return;
  Line& line = lines_[at];
  if (line.versions.empty()) line.versions.push_back(now);
  changed = word;
  line.versions.push_back(now);
}

void PendingLines::Flush(uint64_t offset, uint64_t size) {
  for (auto line = lines_.lower_bound(offset); line != lines_.end() && line->first < offset + size; ++line) {
    line->second.flushed = line->second.versions.size() - 1;
  }
}

void PendingLines::Drain() {
  for (auto next = lines_.begin(); next != lines_.end();) {
    Line& line = next->second;
    line.versions.erase(line.versions.begin(), line.versions.begin() + static_cast<ptrdiff_t>(line.flushed));
    line.flushed = 0;
    next = line.versions.size() == 1 ? lines_.erase(next) : std::next(next);
  }
}

}  // namespace farside::check
