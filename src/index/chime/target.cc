#include "index/chime/target.h"

#include "index/chime/mutants.h"

namespace farside::index::chime {
namespace {

bool IsFree(const Entry& entry) { return !entry.used || (Mutant(kZeroKeyIsFree) && entry.key == 0); }

bool MayBeOf(const Shape& shape, const Target& target, const Neighbourhood& hood, const Entry& entry) {
  if (Mutant(kGuessNotCompared) && hood.is_guess()) return entry.used;
  if (IsFree(entry) || entry.key != target.key.prefix) return false;
  return shape.inline_keys || BlockRef(entry.value).tag() == TagOf(target.hash);
}

}  // namespace

size_t NextCandidate(const Shape& shape, const Target& target, const Neighbourhood& hood, size_t from) {
  size_t i = from;
  while (i < hood.size() && !MayBeOf(shape, target, hood, hood.Get(i))) ++i;
  return i;
}

size_t FirstFree(const Neighbourhood& hood) {
  size_t i = 0;
  while (i < hood.size() && !IsFree(hood.Get(i))) ++i;
  return i;
}

}  // namespace farside::index::chime
