#include "pool/memory/chunk.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace farside::pool {

BlockSet::BlockSet(uint32_t blocks)
    : words_((blocks + 63) / 64), used_((words_.size() + 63) / 64), blocks_(blocks) {}

bool BlockSet::Insert(uint32_t block) {
  assert(block < blocks_);
  const uint32_t word = block / 64;
  const uint64_t bit = uint64_t{1} << (block % 64);
  if ((words_[word] & bit) != 0) return false;
  words_[word] |= bit;
  used_[word / 64] |= uint64_t{1} << (word % 64);
  lowest_ = std::min(lowest_, word / 64);
  ++size_;
  return true;
}

bool BlockSet::Erase(uint32_t block) {
  assert(block < blocks_);
  const uint32_t word = block / 64;
  const uint64_t bit = uint64_t{1} << (block % 64);
  if ((words_[word] & bit) == 0) return false;
  words_[word] &= ~bit;
  if (words_[word] == 0) used_[word / 64] &= ~(uint64_t{1} << (word % 64));
  --size_;
  return true;
}

void BlockSet::InsertAll() {
  const auto fill = [](std::vector<uint64_t>& words, size_t bits) {
    std::fill(words.begin(), words.end(), ~uint64_t{0});
    if (bits % 64 != 0) words.back() >>= 64 - bits % 64;
  };
  fill(words_, blocks_);
  fill(used_, words_.size());
  size_ = blocks_;
  lowest_ = 0;
}

uint32_t BlockSet::TakeLowest() {
  assert(size_ > 0);
  while (used_[lowest_] == 0) ++lowest_;
  const uint32_t word = lowest_ * 64 + static_cast<uint32_t>(std::countr_zero(used_[lowest_]));
  const uint32_t block = word * 64 + static_cast<uint32_t>(std::countr_zero(words_[word]));
  words_[word] &= words_[word] - 1;
  if (words_[word] == 0) used_[lowest_] &= used_[lowest_] - 1;
  --size_;
  return block;
}

}  // namespace farside::pool
