#include "index/continuity/node_memory.h"

#include <algorithm>
#include <cstring>

namespace farside::index::continuity {

std::string CheckedMemory::LoadBytes(uint64_t offset, uint64_t size) {
  if (!Check(offset, pool::RoundUp(size, sizeof(uint64_t)))) return "";
  std::string bytes(size, '\0');
  for (uint64_t done = 0; done < size; done += sizeof(uint64_t)) {
    const uint64_t word = memory_.Load(offset + done);
    std::memcpy(bytes.data() + done, &word, std::min<uint64_t>(sizeof word, size - done));
  }
  return bytes;
}

// Whole words: what is behind the last byte becomes zero.
void CheckedMemory::StoreBytes(uint64_t offset, std::string_view bytes) {
  if (!Check(offset, pool::RoundUp(bytes.size(), sizeof(uint64_t)))) return;
  for (uint64_t done = 0; done < bytes.size(); done += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + done, std::min<uint64_t>(sizeof word, bytes.size() - done));
    memory_.Store(offset + done, word);
  }
}

}  // namespace farside::index::continuity
