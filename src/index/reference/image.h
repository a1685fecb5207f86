// What an operation does to the entries of a bucket: plain functions of bytes, no far memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "farside/result.h"
#include "index/reference/layout.h"

namespace farside::index::reference {

void Seal(Image& image, uint32_t version);
bool IsSealed(const Image& image, uint32_t version);

// Null if the key is not there. Works on any bytes: sizes beyond the entry are never followed.
const Entry* Find(const Image& image, std::string_view key);
std::string_view KeyOf(const Entry& entry);
std::string_view ValueOf(const Entry& entry);

enum class ChangeKind : uint8_t { kPut, kInsert, kUpdate, kDelete, kCompareAndSet, kIncrement };

struct Change {
  Change(ChangeKind change_kind, std::string_view change_key) : kind(change_kind), key(change_key) {}
  ChangeKind kind;
  std::string_view key;
  std::string_view value;
  std::string_view expected;  // CompareAndSet
  uint64_t delta = 0;         // Increment
};

struct Changed {
  bool was_present = false;
  bool applied = false;   // the image differs now
  uint64_t counter = 0;   // Increment: the new value
};

// Applies `change` to `image`; an error leaves it as it was.
Result<Changed> Apply(const Change& change, Image& image);

}  // namespace farside::index::reference
