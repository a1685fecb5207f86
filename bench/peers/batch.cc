#include "bench/peers/batch.h"

#include <algorithm>
#include <span>

#include "workload/records.h"

namespace farside::peers {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static_assert(kLetters.size() == 64);

// A permutation of the words of 48 bits: odd factors and folded halves can both be undone.
constexpr uint64_t Scatter(uint64_t word) {
  constexpr uint64_t kMask = kMostRecords - 1;
  word = (word * 0x9e3779b97f4b) & kMask;
  word ^= word >> 24;
  word = (word * 0xbf58476d1ce5) & kMask;
  word ^= word >> 24;
  return word;
}

}  // namespace

void FillKey(uint64_t record, char* key) {
  uint64_t word = Scatter(record);
  for (size_t i = 0; i < kKeyBytes; ++i, word >>= 6) key[i] = kLetters[word & 63];
}

Batch::Batch(size_t size, size_t value_size)
    : capacity_(size),
      value_size_(value_size),
      size_(size),
      keys_(size * kKeyBytes, '\0'),
      values_(size * value_size, '\0') {}

void Batch::Draw(Operation operation, Random& random, uint64_t records) {
  size_ = capacity_;
  for (size_t i = 0; i < size_; ++i) {
    SetRecord(i, random.Below(records));
    if (operation == Operation::kSet) SetValue(i, static_cast<uint32_t>(random.Next()));
  }
}

void Batch::Take(uint64_t first, uint64_t records) {
  size_ = first < records ? std::min<uint64_t>(capacity_, records - first) : 0;
  for (size_t i = 0; i < size_; ++i) {
    SetRecord(i, first + i);
    SetValue(i, 0);
  }
}

bool Batch::IsRight(size_t i, std::string_view value) const {
  return workload::IsValueOf(key(i), value, value_size_);
}

void Batch::SetRecord(size_t i, uint64_t record) { FillKey(record, keys_.data() + i * kKeyBytes); }

void Batch::SetValue(size_t i, uint32_t version) {
  workload::FillValue(key(i), version, std::span(values_).subspan(i * value_size_, value_size_));
}

}  // namespace farside::peers
