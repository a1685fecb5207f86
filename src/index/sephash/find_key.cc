#include "index/sephash/find_key.h"

#include "index/sephash/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::sephash {

using fabric::FarAddr;

namespace {

// Nothing if the entry is of another key with the same tag.
Task<std::optional<Found>> ReadIfOf(KeyAccess at, Entry entry, BlockBuffer& block) {
  co_await ReadBlock(at.op, FarAddr(at.node(), entry.offset()), entry.bytes(), block);
  const Result<pool::BlockView> view = pool::DecodeBlock(block.bytes());
  if (!view.ok()) co_return view.error();
  if (view->key != at.key) co_return std::nullopt;
  co_return Found{.entry = entry, .bytes = block.bytes().size(), .value = view->value};
}

}  // namespace

// The entry nearest to the end is the latest.
Task<std::optional<Found>> FindInLook(KeyAccess at, const Look& look, BlockBuffer& block) {
  const Tag tag = at.tag(look.depth());
  for (size_t slot = look.sampled; slot-- > 0;) {
    const Entry entry = look.image.entries[Mutant(kOldestEntryWins) ? look.sampled - 1 - slot : slot];
    const bool of_round = entry.epoch() == look.epoch() || Mutant(kEntryOfLastRoundTaken);
    if (!of_round || entry.tag() != tag || entry.is_padding() || entry == Entry()) continue;
    const std::optional<Found> found = co_await ReadIfOf(at, entry, block);
    if (found.has_value()) co_return found;
  }
  co_return std::nullopt;
}

Task<std::optional<Found>> FindInMain(KeyAccess at, uint32_t depth, const MainRange& main,
                                      BlockBuffer& block) {
  const Candidates candidates(at, depth);
  for (const Entry& entry : main.entries()) {
    if (!candidates.Has(entry)) continue;
    const std::optional<Found> found = co_await ReadIfOf(at, entry, block);
    if (found.has_value()) co_return found;
  }
  co_return std::nullopt;
}

Task<std::optional<Found>> FindInView(KeyAccess at, const View& view, BlockBuffer& block) {
  std::optional<Found> found = co_await FindInLook(at, view.look, block);
  if (!found.has_value()) found = co_await FindInMain(at, view.look.depth(), view.main, block);
  co_return found;
}

}  // namespace farside::index::sephash
