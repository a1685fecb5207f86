#include "check/power/power_sweep.h"

#include <algorithm>
#include <cassert>

#include "base/bytes.h"

namespace farside::check {

// The memory of the node as one operation of a script finds it.
class PowerSweep::Memory final : public fabric::NodeMemory {
 public:
  Memory(PowerSweep& sweep, std::function<void()> before_drain)
      : sweep_(sweep), before_drain_(std::move(before_drain)) {}

  uint64_t bytes() const override { return sweep_.visible_.size(); }
  uint64_t Load(uint64_t offset) const override {
    assert(offset % 8 == 0 && offset + 8 <= bytes());
    return LoadU64(sweep_.visible_.data() + offset);
  }
  void Store(uint64_t offset, uint64_t word) override {
    assert(offset % 8 == 0 && offset + 8 <= bytes());
    sweep_.pending_.Store(sweep_.visible_, offset, word);
    StoreU64(sweep_.visible_.data() + offset, word);
  }

 private:
  void FlushLines(uint64_t offset, uint64_t size) override { sweep_.pending_.Flush(offset, size); }
  void DrainLines() override {
    before_drain_();
    sweep_.pending_.Drain();
  }

  PowerSweep& sweep_;
  const std::function<void()> before_drain_;
};

PowerSweep::PowerSweep(std::span<const std::byte> initial, SurvivorLimits limits, uint64_t seed)
    : limits_(limits), random_(seed), visible_(initial.begin(), initial.end()), survived_(initial.size()) {
  assert(initial.size() % fabric::kLineBytes == 0);
}

PowerSweep::Counts PowerSweep::Run(const std::vector<Operation>& script, const Check& check) {
  Counts counts;
  for (size_t ended = 0; ended < script.size(); ++ended) {
    Memory memory(*this, [&] { CheckOutcomes(ended, ended + 1, check, counts); });
    script[ended](memory);
    counts.flushed += memory.flushed();
    CheckOutcomes(ended + 1, ended + 1, check, counts);
  }
  return counts;
}

void PowerSweep::CheckOutcomes(size_t acknowledged, size_t begun, const Check& check, Counts& counts) {
  if (stopped_) return;
  const SurvivorCounts visited = VisitSurvivors(pending_, limits_, random_, visible_, [&] {
    std::ranges::copy(visible_, survived_.begin());
    check(survived_, acknowledged, begun);
    return !stopped_;
  });
  ++counts.points;
  counts.complete += visited.complete ? 1 : 0;
  counts.states += visited.states;
}

}  // namespace farside::check
