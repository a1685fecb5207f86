// Images of a bucket's entries: plain functions of bytes, no far memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "index/reference/layout.h"

namespace farside::index::reference {

void Seal(Image& image, uint32_t version);
bool IsSealed(const Image& image, uint32_t version);

// The image that counts, or null if it is not complete. An empty one if nothing was ever written.
const Image* CurrentImage(const Bucket& bucket);

// The first empty entry, if there is one.
std::optional<size_t> FindEmpty(const Image& image);
// The first entry at `from` or behind it that may be of a key with this hash.
std::optional<size_t> FindCandidate(const Image& image, uint64_t hash, size_t from);

}  // namespace farside::index::reference
