#include "index/reference/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"

namespace farside::index::reference {
namespace {

uint64_t Checksum(const Image& image) {
  return Hash64(std::as_bytes(std::span(&image, 1)).subspan(sizeof(image.checksum)));
}

Entry* FindMutable(Image& image, std::string_view key) { return const_cast<Entry*>(Find(image, key)); }

void Fill(Entry& entry, std::string_view key, std::string_view value) {
  entry = Entry{};
  entry.state = EntryState::kUsed;
  entry.key_bytes = static_cast<uint8_t>(key.size());
  entry.value_bytes = static_cast<uint8_t>(value.size());
  std::copy(key.begin(), key.end(), entry.key.begin());
  std::copy(value.begin(), value.end(), entry.value.begin());
}

Result<Changed> Store(Image& image, Entry* entry, std::string_view key, std::string_view value) {
  Changed changed{.was_present = entry != nullptr, .applied = true};
  if (entry == nullptr) {
    const auto free = std::find_if(image.entries.begin(), image.entries.end(),
                                   [](const Entry& e) { return e.state == EntryState::kEmpty; });
    if (free == image.entries.end()) {
      return Error(ErrorCode::kOutOfMemory,
                   fmt::format("the bucket of this key is full ({} entries); make the table with more buckets", kEntries));
    }
    entry = &*free;
  }
  Fill(*entry, key, value);
  return changed;
}

Result<Changed> Add(Image& image, Entry* entry, const Change& change) {
  uint64_t counter = 0;
  if (entry != nullptr) {
    if (entry->value_bytes != 8) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("the value has {} bytes; a counter has 8", entry->value_bytes));
    }
    counter = LoadU64(AsBytes(ValueOf(*entry)).data());
  }
  counter += change.delta;
  std::array<std::byte, 8> bytes;
  StoreU64(bytes.data(), counter);
  Result<Changed> changed = Store(image, entry, change.key, AsText(bytes));
  if (changed.ok()) changed->counter = counter;
  return changed;
}

}  // namespace

void Seal(Image& image, uint32_t version) {
  image.version = version;
  image.checksum = Checksum(image);
}

bool IsSealed(const Image& image, uint32_t version) {
  return image.version == version && image.checksum == Checksum(image);
}

std::string_view KeyOf(const Entry& entry) {
  return {entry.key.data(), std::min<size_t>(entry.key_bytes, kMaxKeyBytes)};
}
std::string_view ValueOf(const Entry& entry) {
  return {entry.value.data(), std::min<size_t>(entry.value_bytes, kMaxValueBytes)};
}

const Entry* Find(const Image& image, std::string_view key) {
  for (const Entry& entry : image.entries) {
    if (entry.state == EntryState::kUsed && KeyOf(entry) == key) return &entry;
  }
  return nullptr;
}

Result<Changed> Apply(const Change& change, Image& image) {
  Entry* entry = FindMutable(image, change.key);
  const bool present = entry != nullptr;
  const Changed refused{.was_present = present};
  switch (change.kind) {
    case ChangeKind::kPut: return Store(image, entry, change.key, change.value);
    case ChangeKind::kInsert: return present ? refused : Store(image, entry, change.key, change.value);
    case ChangeKind::kUpdate: return present ? Store(image, entry, change.key, change.value) : refused;
    case ChangeKind::kIncrement: return Add(image, entry, change);
    case ChangeKind::kCompareAndSet:
      if (!present || ValueOf(*entry) != change.expected) return refused;
      return Store(image, entry, change.key, change.value);
    case ChangeKind::kDelete:
      if (!present) return refused;
      *entry = Entry{};
      return Changed{.was_present = true, .applied = true};
  }
  return refused;
}

}  // namespace farside::index::reference
