#include "workload/zipfian.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace farside::workload {
namespace {

constexpr uint64_t kTermsOneByOne = 1000;

}  // namespace

double Zeta(uint64_t n, double theta) {
  double sum = 0;
  const uint64_t exact = std::min(n, kTermsOneByOne);
  for (uint64_t i = 1; i <= exact; ++i) sum += std::pow(static_cast<double>(i), -theta);
  if (n == exact) return sum;
  // The terms from a (already counted) to b: the integral, half of the ends, and a twelfth of the slopes'
  // difference.
  const auto a = static_cast<double>(exact);
  const auto b = static_cast<double>(n);
  const double integral = (std::pow(b, 1 - theta) - std::pow(a, 1 - theta)) / (1 - theta);
  const double ends = (std::pow(b, -theta) - std::pow(a, -theta)) / 2;
  const double slopes = theta * (std::pow(a, -theta - 1) - std::pow(b, -theta - 1)) / 12;
  return sum + integral + ends + slopes;
}

Zipfian::Zipfian(uint64_t n, double theta)
    : items_(n), theta_(theta), alpha_(1 / (1 - theta)), zeta_two_(Zeta(2, theta)), zeta_(Zeta(n, theta)) {
  assert(n > 0 && theta > 0 && theta < 1);
  SetEta();
}

void Zipfian::Grow(uint64_t n) {
  if (n <= items_) return;
  for (uint64_t i = items_ + 1; i <= n; ++i) zeta_ += std::pow(static_cast<double>(i), -theta_);
  items_ = n;
  SetEta();
}

void Zipfian::SetEta() {
  if (items_ <= 2) return;  // the first two ranks are drawn without it
  eta_ = (1 - std::pow(2 / static_cast<double>(items_), 1 - theta_)) / (1 - zeta_two_ / zeta_);
}

uint64_t Zipfian::Draw(Random& random) const {
  constexpr double kUnit = 0x1p-53;
  const double u = static_cast<double>(random.Next() >> 11) * kUnit;  // 0 <= u < 1
  const double scaled = u * zeta_;
  if (scaled < 1 || items_ == 1) return 0;
  if (scaled < zeta_two_ || items_ == 2) return 1;
  const double rank = static_cast<double>(items_) * std::pow(eta_ * u - eta_ + 1, alpha_);
  return std::min(static_cast<uint64_t>(rank), items_ - 1);
}

Scramble::Scramble(uint64_t n)
    : items_(n),
      mask_(n <= 1 ? 0 : ~uint64_t{0} >> std::countl_zero(n - 1)),
      shift_(std::max(1, static_cast<int>(std::bit_width(mask_)) / 2)) {
  assert(n > 0);
}

// Each step can be undone within the bits of the mask: adding, multiplying by an odd number, and xor with the
// upper half.
uint64_t Scramble::Mix(uint64_t value) const {
  constexpr uint64_t kOdd[] = {0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xbf58476d1ce4e5b9};
  for (const uint64_t odd : kOdd) {
    value = ((value + 0x6a09e667f3bcc909) * odd) & mask_;
    value ^= value >> shift_;
  }
  return value;
}

// What leaves the items is mixed again until it comes back to them: at most half of the numbers are outside,
// so that is two steps on average.
uint64_t Scramble::operator()(uint64_t rank) const {
  assert(rank < items_);
  uint64_t place = Mix(rank);
  while (place >= items_) place = Mix(place);
  return place;
}

}  // namespace farside::workload
