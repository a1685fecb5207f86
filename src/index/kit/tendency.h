// What the last operations met, as a guess of what the next one will meet.
#pragma once

#include <algorithm>

namespace farside::index {

// A tally that rises by `kRise` when something is met and falls by `kFall` when it is not: it stands high as
// long as kFall in kRise + kFall operations meet it. The weights say what a wrong guess costs either way.
template <int kRise, int kFall, int kMost>
class Tendency {
 public:
  bool Expects() const { return tally_ >= kMost / 2; }
  void Note(bool met) { tally_ = met ? std::min(tally_ + kRise, kMost) : std::max(tally_ - kFall, 0); }
  // Everything meets it, for a while.
  void Fill() { tally_ = kMost; }

 private:
  int tally_ = 0;
};

}  // namespace farside::index
