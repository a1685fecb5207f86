#include "fabric/sim/durable_words.h"

#include <cstring>

namespace farside::fabric::sim {

void DurableWords::Changed(uint64_t offset, uint64_t old, uint64_t now) {
  if (now == old) return;
  History& history = histories_[offset];
  if (history.values.empty()) history.values.push_back(old);
  history.values.push_back(now);
  if (history.values.size() <= kMostValues) return;
  // Neither the durable value nor the one that was flushed.
  const size_t forgotten = history.flushed == 1 ? 2 : 1;
  history.values.erase(history.values.begin() + static_cast<ptrdiff_t>(forgotten));
  if (forgotten < history.flushed) --history.flushed;
}

void DurableWords::Flush(uint64_t offset, uint64_t size) {
  for (auto word = histories_.lower_bound(offset); word != histories_.end() && word->first < offset + size;
       ++word) {
    word->second.flushed = word->second.values.size() - 1;
    flushed_.insert(word->first);
  }
}

void DurableWords::Drain() {
  for (const uint64_t offset : flushed_) {
    const auto word = histories_.find(offset);
    History& history = word->second;
    history.values.erase(history.values.begin(),
                         history.values.begin() + static_cast<ptrdiff_t>(history.flushed));
    history.flushed = 0;
    if (history.values.size() == 1) histories_.erase(word);
  }
  flushed_.clear();
}

// Some cuts lose nearly everything that they may, others nearly nothing: few mistakes need words that are
// half and half.
size_t DurableWords::CutPower(std::span<std::byte> memory, Random& random) {
  enum class Mood : uint8_t { kEven, kHarsh, kMild };
  const auto mood = static_cast<Mood>(random.Below(3));
  size_t fallen_back = 0;
  for (const auto& [offset, history] : histories_) {
    const size_t newest = history.values.size() - 1;
    size_t survivor = random.Below(history.values.size());
    if (mood != Mood::kEven && !random.Chance(1, 8)) survivor = mood == Mood::kHarsh ? 0 : newest;
    if (survivor == newest) continue;
    std::memcpy(memory.data() + offset, &history.values[survivor], sizeof(uint64_t));
    ++fallen_back;
  }
  histories_.clear();
  flushed_.clear();
  return fallen_back;
}

std::vector<uint64_t> DurableWords::ValuesOf(uint64_t offset) const {
  const auto word = histories_.find(offset);
  return word == histories_.end() ? std::vector<uint64_t>() : word->second.values;
}

}  // namespace farside::fabric::sim
