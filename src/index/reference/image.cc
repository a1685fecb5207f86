#include "index/reference/image.h"

#include <span>

#include "base/hash.h"
#include "index/reference/mutants.h"

namespace farside::index::reference {
namespace {

uint64_t Checksum(const Image& image) {
  return Hash64(std::as_bytes(std::span(&image, 1)).subspan(sizeof(image.checksum)));
}

}  // namespace

void Seal(Image& image, uint32_t version) {
  image.version = version;
  image.checksum = Checksum(image);
}

bool IsSealed(const Image& image, uint32_t version) {
  return image.version == version && image.checksum == Checksum(image);
}

const Image* CurrentImage(const Bucket& bucket) {
  static constexpr Image kNothing{};
  if (bucket.head.version() == 0) return &kNothing;
  const Image& image = bucket.images[bucket.head.image()];
  if (Mutant(kAcceptTornImage) || IsSealed(image, bucket.head.version())) return &image;
  return nullptr;
}

std::optional<size_t> FindEmpty(const Image& image) {
  for (size_t i = 0; i < kEntries; ++i) {
    if (image.entries[i].empty()) return i;
  }
  return std::nullopt;
}

std::optional<size_t> FindCandidate(const Image& image, uint64_t hash, size_t from) {
  for (size_t i = from; i < kEntries; ++i) {
    if (image.entries[i].MayBe(hash)) return i;
  }
  return std::nullopt;
}

}  // namespace farside::index::reference
