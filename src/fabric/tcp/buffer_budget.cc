#include "fabric/tcp/buffer_budget.h"

#include <fmt/format.h>

namespace farside::fabric::tcp {

std::string BufferBudget::Refusal() const {
  return fmt::format(
      "the node has {} MiB for large requests and answers of all its clients, at most half of it for one, "
      "and they are in use; try again later, or with less at once",
      most_ >> 20);
}

bool BufferShare::Claim(size_t bytes) {
  if (bytes <= kOwnBuffer) return true;
  const size_t most = budget_.most_;
  // Added only if it fits: connections that claim little at the same time must not be refused because of this
  // one.
  size_t in_use = budget_.in_use();
  do {
    if (bytes > most || in_use > most - bytes) return false;       // buffers/1
    if (counted_ + bytes > most - (in_use + bytes)) return false;  // buffers/2
  } while (!budget_.in_use_.compare_exchange_weak(in_use, in_use + bytes));
  counted_ += bytes;
  return true;
}

void BufferShare::Update(std::initializer_list<size_t> buffers) {
  size_t large = 0;
  for (const size_t bytes : buffers) large += bytes > kOwnBuffer ? bytes : 0;
  if (large == counted_) return;
  budget_.in_use_.fetch_add(large - counted_);  // modulo 2^64, if it has less than before
  counted_ = large;
}

}  // namespace farside::fabric::tcp
