// Ranks 0 .. n-1 with Zipf's distribution: rank k comes with a probability proportional to 1 / (k+1)^theta.
//
// A draw takes constant time and no tables: the method of Gray, Sundaresan, Englert, Baclawski and
// Weinberger, "Quickly generating billion-record synthetic databases" (SIGMOD 1994), section 3.2. The first
// two ranks have exactly their probability; for the others a continuous curve stands in for the sum. Rank 2
// comes a fifth too often with it, rank 10 by a few percent, and those far behind are off by as little. YCSB
// draws the same way.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace farside::workload {

// The sum of 1 / i^theta for i = 1 .. n: the first terms one by one, the rest by the formula of Euler and
// Maclaurin, to about 12 digits. Constant time.
double Zeta(uint64_t n, double theta);

class Zipfian {
 public:
  static constexpr double kTheta = 0.99;  // what YCSB takes

  // n > 0, 0 < theta < 1.
  explicit Zipfian(uint64_t n, double theta = kTheta);

  uint64_t items() const { return items_; }
  double theta() const { return theta_; }
  // Items may come, never go. Constant time for each that has come.
  void Grow(uint64_t n);

  uint64_t Draw(Random& random) const;

 private:
  void SetEta();

  uint64_t items_;
  double theta_;
  double alpha_;     // 1 / (1 - theta)
  double zeta_two_;  // of the first two ranks
  double zeta_;      // of all
  double eta_ = 0;
};

// A permutation of 0 .. n-1 that looks random and takes constant time and memory: popular ranks end up
// anywhere. (YCSB hashes the rank, which lets some records share a place and leaves a third of all out.)
class Scramble {
 public:
  explicit Scramble(uint64_t n);
  uint64_t operator()(uint64_t rank) const;

 private:
  uint64_t Mix(uint64_t value) const;

  uint64_t items_;
  uint64_t mask_;  // of the smallest power of two that holds all items
  int shift_;
};

}  // namespace farside::workload
