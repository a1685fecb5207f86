#include "workload/records.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"

namespace farside::workload {
namespace {

constexpr size_t kWord = 8;

size_t VersionBytes(size_t value_size) { return std::min<size_t>(4, value_size / 2); }

// The bytes that follow the version, eight at a time; the last ones are cut off.
class Proof {
 public:
  Proof(std::string_view key, uint32_t version) : state_(Hash64(key, version)) {}
  void Next(char (&word)[kWord]) { StoreU64(reinterpret_cast<std::byte*>(word), SplitMix64(state_)); }

 private:
  uint64_t state_;
};

uint32_t VersionOf(std::string_view value) {
  std::byte bytes[4] = {};
  std::memcpy(bytes, value.data(), VersionBytes(value.size()));
  return LoadU32(bytes);
}

}  // namespace

// SplitMix64 maps words to words one to one, so different records have different first words.
void FillKey(uint64_t record, std::span<char> key) {
  assert(key.size() >= kFewestKeyBytes);
  uint64_t state = record;
  std::byte word[kWord];
  for (size_t at = 0; at < key.size(); at += kWord) {
    StoreU64(word, SplitMix64(state));
    std::memcpy(key.data() + at, word, std::min(kWord, key.size() - at));
  }
}

void FillValue(std::string_view key, uint32_t version, std::span<char> value) {
  const size_t version_bytes = VersionBytes(value.size());
  std::byte bytes[4];
  StoreU32(bytes, version);
  std::memcpy(value.data(), bytes, version_bytes);
  // What was cut off is not there for the reader either.
  Proof proof(key, VersionOf(std::string_view(value.data(), value.size())));
  char word[kWord];
  for (size_t at = version_bytes; at < value.size(); at += kWord) {
    proof.Next(word);
    std::memcpy(value.data() + at, word, std::min(kWord, value.size() - at));
  }
}

bool IsValueOf(std::string_view key, std::string_view value, size_t value_size) {
  if (value.size() != value_size) return false;
  Proof proof(key, VersionOf(value));
  char word[kWord];
  size_t at = VersionBytes(value_size);
  for (; at + kWord <= value_size; at += kWord) {
    proof.Next(word);
    if (std::memcmp(value.data() + at, word, kWord) != 0) return false;  // one comparison of registers
  }
  proof.Next(word);
  for (size_t i = 0; at + i < value_size; ++i) {
    if (value[at + i] != word[i]) return false;
  }
  return true;
}

}  // namespace farside::workload
