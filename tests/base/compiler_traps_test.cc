// Traps of the compilers we build with, and that our way around each of them works.
//
// fetch_or, fetch_and and fetch_xor (g++ 12.2, x86-64, from -O1 on). No instruction returns the old value, so
// g++ makes a compare-and-swap loop. In that loop it saves the old value in the register of the result before
// it computes the new value from the operand. If result and operand were given one register, the operand is
// gone by then:
//
//   old = std::atomic_ref(word).fetch_or(old);      // stores word | word: the bits are never set
//
// The two share a register wherever one value can take the place of the other: the variable is the same, a
// loop feeds one into the other, or two branches join and bring the one or the other. The last happens
// without any assignment, even between `const` locals, and inlining can bring it about in a caller:
//
//   if (wanted) return std::atomic_ref(word).fetch_or(bits);
//   return bits;                                    // wrong as well
//
// So a variable of its own for the result is not enough. Our rule: where the old value is used, write the
// loop out, as FetchOr below does; it compiles to the same loop, in the right order. Where it is not used,
// fetch_or is a plain `lock or` and right. fetch_add, exchange and compare_exchange have instructions of
// their own and are right. (-fno-tree-coalesce-vars avoids the trap too, but a header cannot rely on the
// flags of files that include it.)
#include <atomic>
#include <cstdint>

#include <gtest/gtest.h>

namespace farside {
namespace {

// Our way. Inline, so that the optimizer sees it together with the shapes below.
template <class Combine>
inline uint64_t FetchAndChange(uint64_t& word, Combine combine) {
  const std::atomic_ref<uint64_t> shared(word);
  uint64_t before = shared.load(std::memory_order_relaxed);
  while (!shared.compare_exchange_weak(before, combine(before))) {
  }
  return before;
}
inline uint64_t FetchOr(uint64_t& word, uint64_t bits) {
  return FetchAndChange(word, [bits](uint64_t before) { return before | bits; });
}
inline uint64_t FetchAnd(uint64_t& word, uint64_t bits) {
  return FetchAndChange(word, [bits](uint64_t before) { return before & bits; });
}
inline uint64_t FetchXor(uint64_t& word, uint64_t bits) {
  return FetchAndChange(word, [bits](uint64_t before) { return before ^ bits; });
}

enum class Op { kOr, kAnd, kXor, kNone };

// The shapes in which the standard functions go wrong. Not inlined, and called with Opaque arguments, so that
// nothing is known about the operand and the registers are the optimizer's choice.

uint64_t Opaque(uint64_t value) {
  volatile uint64_t hidden = value;
  return hidden;
}

// Branches join, and one brings the operand.
[[gnu::noinline]] uint64_t JoinOfBranches(uint64_t& word, Op op, uint64_t bits) {
  switch (op) {
    case Op::kOr: return FetchOr(word, bits);
    case Op::kAnd: return FetchAnd(word, bits);
    case Op::kXor: return FetchXor(word, bits);
    case Op::kNone: break;
  }
  return bits;
}

// The result takes the operand's variable.
[[gnu::noinline]] uint64_t OneVariable(uint64_t& word, Op op, uint64_t value) {
  switch (op) {
    case Op::kOr: value = FetchOr(word, value); break;
    case Op::kAnd: value = FetchAnd(word, value); break;
    case Op::kXor: value = FetchXor(word, value); break;
    case Op::kNone: break;
  }
  return value;
}

// The result is the operand of the next round.
[[gnu::noinline]] uint64_t OrRounds(uint64_t& word, uint64_t rounds, uint64_t value) {
  for (uint64_t i = 0; i < rounds; ++i) value = FetchOr(word, value);
  return value;
}
[[gnu::noinline]] uint64_t AndRounds(uint64_t& word, uint64_t rounds, uint64_t value) {
  for (uint64_t i = 0; i < rounds; ++i) value = FetchAnd(word, value);
  return value;
}
[[gnu::noinline]] uint64_t XorRounds(uint64_t& word, uint64_t rounds, uint64_t value) {
  for (uint64_t i = 0; i < rounds; ++i) value = FetchXor(word, value);
  return value;
}

// The standard functions where the rule allows them: the old value is not used.
[[gnu::noinline]] uint64_t WithoutResult(uint64_t& word, Op op, uint64_t bits) {
  const std::atomic_ref<uint64_t> shared(word);
  if (op == Op::kOr) shared.fetch_or(bits);
  if (op == Op::kAnd) shared.fetch_and(bits);
  if (op == Op::kXor) shared.fetch_xor(bits);
  return bits;
}

struct Case {
  Op op;
  uint64_t after;  // of 0b1100 and 0b1010
};
constexpr Case kCases[] = {{Op::kOr, 0b1110}, {Op::kAnd, 0b1000}, {Op::kXor, 0b0110}};

// Given a word 1100 and the operand 1010. When they are combined where branches join, and where result and
// operand share a variable. Expect the old word back and the new one in place.
TEST(CompilerTraps, FetchBitsKeepsTheOperandWhereBranchesJoin) {
  for (const auto& [op, after] : kCases) {
    uint64_t word = 0b1100;
    EXPECT_EQ(JoinOfBranches(word, op, Opaque(0b1010)), 0b1100u);
    EXPECT_EQ(word, after);
  }
  uint64_t untouched = 0b1100;
  EXPECT_EQ(JoinOfBranches(untouched, Op::kNone, Opaque(0b1010)), 0b1010u);
  EXPECT_EQ(untouched, 0b1100u);
}

TEST(CompilerTraps, FetchBitsKeepsTheOperandInASharedVariable) {
  for (const auto& [op, after] : kCases) {
    uint64_t word = 0b1100;
    EXPECT_EQ(OneVariable(word, op, Opaque(0b1010)), 0b1100u);
    EXPECT_EQ(word, after);
  }
}

// Given the same. When the result of a round is the operand of the next. Expect what paper and pencil give.
TEST(CompilerTraps, FetchBitsKeepsTheOperandAroundALoop) {
  uint64_t word = 0b1100;
  EXPECT_EQ(OrRounds(word, Opaque(2), Opaque(0b1010)), 0b1110u);
  EXPECT_EQ(word, 0b1110u);

  word = 0b1100;
  EXPECT_EQ(AndRounds(word, Opaque(2), Opaque(0b1010)), 0b1000u);
  EXPECT_EQ(word, 0b1000u);

  word = 0b1100;
  EXPECT_EQ(XorRounds(word, Opaque(2), Opaque(0b1010)), 0b0110u);
  EXPECT_EQ(word, 0b1010u);
}

// Given the same. When the standard functions are used for their effect alone. Expect the effect.
TEST(CompilerTraps, StandardFetchBitsIsRightWithoutItsResult) {
  for (const auto& [op, after] : kCases) {
    uint64_t word = 0b1100;
    EXPECT_EQ(WithoutResult(word, op, Opaque(0b1010)), 0b1010u);
    EXPECT_EQ(word, after);
  }
}

}  // namespace
}  // namespace farside
