#include "fabric/verb.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace farside::fabric {
namespace {

constexpr FarAddr kAt(NodeId{0}, 64);
constexpr uint64_t kAllOnes = ~uint64_t{0};

constexpr std::array<VerbKind, kVerbKinds> kKinds = {VerbKind::kRead,      VerbKind::kWrite, VerbKind::kCas,
                                                     VerbKind::kMaskedCas, VerbKind::kFaa,   VerbKind::kCall,
                                                     VerbKind::kFence};

Verb OfKind(VerbKind kind, bool fenced = false) {
  Verb verb;
  verb.kind = kind;
  verb.fenced = fenced;
  return verb;
}

// Given the contract's table of verbs. Expect that each kind is sorted as it says.
TEST(VerbKinds, AreSortedAsTheContractSays) {
  struct Row {
    VerbKind kind;
    std::string_view name;
    bool atomic, answered, control, mutates;
  };
  constexpr Row kRows[] = {{VerbKind::kRead, "READ", false, true, false, false},
                           {VerbKind::kWrite, "WRITE", false, false, false, true},
                           {VerbKind::kCas, "CAS", true, true, false, true},
                           {VerbKind::kMaskedCas, "MCAS", true, true, false, true},
                           {VerbKind::kFaa, "FAA", true, true, false, true},
                           {VerbKind::kCall, "CALL", false, false, true, true},
                           {VerbKind::kFence, "FENCE", false, false, true, false}};
  for (const Row& row : kRows) {
    EXPECT_EQ(Name(row.kind), row.name);
    EXPECT_EQ(IsAtomic(row.kind), row.atomic) << row.name;
    EXPECT_EQ(IsAnswered(row.kind), row.answered) << row.name;
    EXPECT_EQ(IsControl(row.kind), row.control) << row.name;
    EXPECT_EQ(Mutates(row.kind), row.mutates) << row.name;
  }
}

// Given a CAS. Expect that it succeeds on the expected word alone, and then leaves the desired one.
TEST(Succeeds, Cas_OnTheWholeWordOnly) {
  const Verb cas = Cas(kAt, 5, 9).verb;
  EXPECT_TRUE(Succeeds(cas, 5));
  EXPECT_EQ(NewWord(cas, 5), 9u);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_FALSE(Succeeds(cas, 5 ^ (uint64_t{1} << bit))) << "bit " << bit;
  }
  EXPECT_TRUE(Succeeds(Cas(kAt, kAllOnes, 0).verb, kAllOnes));
  EXPECT_TRUE(Succeeds(Cas(kAt, 0, 0).verb, 0));
}

// Given a masked CAS on the low byte that swaps the second byte. Expect that it looks at compared bits only,
// and changes swapped bits only.
TEST(Succeeds, MaskedCas_OnTheMaskedBitsOnly) {
  const Verb masked = MaskedCas(kAt, 0, 0x11, 0xff, 0xaabb, 0xff00).verb;
  EXPECT_TRUE(Succeeds(masked, 0x11));
  EXPECT_TRUE(Succeeds(masked, 0x1234567812345611));
  EXPECT_FALSE(Succeeds(masked, 0x1234567812345610));
  EXPECT_EQ(NewWord(masked, 0x1234567812345611), 0x123456781234aa11u);
}

// Given bits of `expect` outside the compare mask and of `desired` outside the swap mask. Expect them
// ignored.
TEST(Succeeds, MaskedCas_IgnoresOperandBitsOutsideTheMasks) {
  const Verb masked = MaskedCas(kAt, 0, kAllOnes, 0x0f, kAllOnes, 0xf0).verb;
  EXPECT_TRUE(Succeeds(masked, 0x0f));
  EXPECT_EQ(NewWord(masked, 0x0f), 0xffu);
  EXPECT_FALSE(Succeeds(masked, 0x0e));
}

// Given a masked CAS with an empty compare mask. Expect that it always succeeds: it sets bits.
TEST(Succeeds, MaskedCas_ComparingNothing_AlwaysSucceeds) {
  const Verb masked = MaskedCas(kAt, 0, 7, 0, 1, 1).verb;
  for (const uint64_t word : {uint64_t{0}, uint64_t{2}, kAllOnes}) {
    EXPECT_TRUE(Succeeds(masked, word));
    EXPECT_EQ(NewWord(masked, word), word | 1);
  }
}

// Given FAA. Expect that it always succeeds, and wraps around; subtraction is addition of the complement.
TEST(Succeeds, Faa_AlwaysAndModulo2To64) {
  EXPECT_TRUE(Succeeds(Faa(kAt, 1).verb, 12345));
  EXPECT_EQ(NewWord(Faa(kAt, 1).verb, 41), 42u);
  EXPECT_EQ(NewWord(Faa(kAt, 1).verb, kAllOnes), 0u);
  EXPECT_EQ(NewWord(Faa(kAt, kAllOnes).verb, 42), 41u);
}

// What the contract orders between two verbs of one trip that was posted InOrder. Rows: the earlier verb;
// columns: the later one.
//   1  cannot be overtaken      0  may be overtaken      r  only on fabrics that sample READs in order
constexpr std::array<std::string_view, kVerbKinds> kOrder = {
    // READ  WRITE  CAS  MCAS  FAA  CALL  FENCE
    "  r      0     0     0    0    1     1",  // READ
    "  1      1     1     1    1    1     1",  // WRITE
    "  1      0     0     0    0    1     1",  // CAS
    "  1      0     0     0    0    1     1",  // MCAS
    "  1      0     0     0    0    1     1",  // FAA
    "  1      1     1     1    1    1     1",  // CALL
    "  1      1     1     1    1    1     1",  // FENCE
};
std::string WithoutSpaces(std::string_view row) {
  std::string entries(row);
  std::erase(entries, ' ');
  return entries;
}

// Given every pair of verbs, whether the later is fenced, and both kinds of fabric. Expect the table above; a
// fenced verb never overtakes; a fence on the earlier verb orders nothing that follows it.
TEST(MustPrecede, IsTheContractsTable) {
  for (size_t earlier = 0; earlier < kVerbKinds; ++earlier) {
    const std::string row = WithoutSpaces(kOrder[earlier]);
    ASSERT_EQ(row.size(), kVerbKinds);
    for (size_t later = 0; later < kVerbKinds; ++later) {
      for (const bool ordered_reads : {false, true}) {
        const char entry = row[later];
        const bool expected = entry == '1' || (entry == 'r' && ordered_reads);
        for (const bool earlier_fenced : {false, true}) {
          const Verb first = OfKind(kKinds[earlier], earlier_fenced);
          const std::string pair =
              std::string(Name(kKinds[earlier])) + ", " + std::string(Name(kKinds[later]));
          EXPECT_EQ(MustPrecede(first, OfKind(kKinds[later]), ordered_reads), expected) << pair;
          EXPECT_TRUE(MustPrecede(first, OfKind(kKinds[later], true), ordered_reads)) << pair << " fenced";
        }
      }
    }
  }
}

// Given the typed verbs. Expect the record that a backend sees.
TEST(TypedVerbs, LowerToWhatABackendSees) {
  std::array<std::byte, 24> buffer{};

  const Verb read = Read(kAt, buffer).Lower();
  EXPECT_EQ(read.kind, VerbKind::kRead);
  EXPECT_EQ(read.size, 24u);
  EXPECT_EQ(read.into, buffer.data());
  EXPECT_EQ(read.at, kAt);
  EXPECT_EQ(read.purpose, Purpose::kIndex);
  EXPECT_FALSE(read.fenced);

  const Verb write = ForBlock(Unreachable(Write(kAt, buffer))).verb;
  EXPECT_EQ(write.kind, VerbKind::kWrite);
  EXPECT_EQ(write.size, 24u);
  EXPECT_EQ(write.from, buffer.data());
  EXPECT_EQ(write.purpose, Purpose::kBlock);
  EXPECT_TRUE(write.unreachable);

  const Verb cas = Fenced(ForMaintenance(Cas(kAt, 1, 2))).verb;
  EXPECT_EQ(cas.size, 8u);
  EXPECT_EQ(cas.expect, 1u);
  EXPECT_EQ(cas.hint, 1u);
  EXPECT_EQ(cas.desired, 2u);
  EXPECT_EQ(cas.compare_mask, kAllOnes);
  EXPECT_EQ(cas.swap_mask, kAllOnes);
  EXPECT_EQ(cas.purpose, Purpose::kMaintenance);
  EXPECT_TRUE(cas.fenced);

  const Verb masked = MaskedCas(kAt, 1, 2, 3, 4, 5).verb;
  EXPECT_EQ(masked.kind, VerbKind::kMaskedCas);
  EXPECT_EQ(masked.hint, 1u);
  EXPECT_EQ(masked.expect, 2u);
  EXPECT_EQ(masked.compare_mask, 3u);
  EXPECT_EQ(masked.desired, 4u);
  EXPECT_EQ(masked.swap_mask, 5u);

  const Verb fence = FenceVerb(NodeId{3}, ClientId{9}).Lower();
  EXPECT_EQ(fence.kind, VerbKind::kFence);
  EXPECT_EQ(fence.at.node, NodeId{3});
  EXPECT_EQ(fence.desired, 9u);
  EXPECT_EQ(fence.purpose, Purpose::kMaintenance);
}

}  // namespace
}  // namespace farside::fabric
