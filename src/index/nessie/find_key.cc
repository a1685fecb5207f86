#include "index/nessie/find_key.h"

#include <span>

#include "index/nessie/errors.h"
#include "index/nessie/mutants.h"

namespace farside::index::nessie {

using fabric::Op;

namespace {

bool MayBeOfKey(Word word, uint64_t tag) {
  if (word.is(Kind::kClaim) && !Mutant(kClaimIsItem)) return false;
  return word.has_item() && word.tag() == tag;
}

}  // namespace

Task<Done> Entries::Find(Op& op, const Partition& part, const KeyHash& hash, std::string_view key,
                         const Look& look) {
  std::array<Candidate, kMostItemReads> readers{};
  std::array<ItemRead*, kMostItemReads> reads{};
  size_t count = 0;
  const uint64_t tag = hash.tag();
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
    const Trail::Step& step = look.of(candidate).effective_step();
    if (step.word.is_damaged()) co_return BrokenWord(part, step.slot);
    of(candidate).is_there = false;
    if (!MayBeOfKey(step.word, tag)) continue;
    of(candidate).word = step.word;
    readers[count] = candidate;
    reads_[count].word = step.word;
    reads[count] = &reads_[count];
    ++count;
  }
  if (count == 0) co_return Done{};
  co_await ReadItems(op, part.node(), std::span(reads).first(count));
  for (size_t i = 0; i < count; ++i) {
    const Result<Item> item = reads_[i].Decode();
    if (!item.ok()) co_return item.error();
    Entry& entry = of(readers[i]);
    entry.is_there = item->IsOf(key, hash.hash(), entry.word.is(Kind::kPending)) || Mutant(kTagIsKey);
    entry.item = *item;
    if (Mutant(kClaimIsItem) && entry.word.is(Kind::kClaim)) entry.word = entry.word.As(Kind::kLive);
  }
  co_return Done{};
}

}  // namespace farside::index::nessie
