#include "fabric/tcp/byte_queue.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace farside::fabric::tcp {
namespace {

constexpr size_t kKiB = size_t{1} << 10;

std::vector<std::byte> Counted(size_t bytes, size_t first) {
  std::vector<std::byte> counted(bytes);
  for (size_t i = 0; i < bytes; ++i) counted[i] = static_cast<std::byte>((first + i) * 131 / 64);
  return counted;
}
void ExpectCounted(std::span<const std::byte> bytes, size_t first) {
  const std::vector<std::byte> expected = Counted(bytes.size(), first);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected.begin()));
}

// Given a queue of some bytes, of which some were consumed. When it grows, in small steps and to many sizes.
// Expect that it has what was not consumed, in one piece.
TEST(ByteQueue, KeepsWhatItHasWhenItGrows) {
  for (const size_t first : {1 * kKiB, 100 * kKiB, 128 * kKiB, 129 * kKiB, 700 * kKiB}) {
    for (const size_t consumed : {size_t{0}, size_t{1}, first / 2, first - 1}) {
      ByteQueue queue;
      queue.Append(Counted(first, 0));
      queue.Consume(consumed);
      size_t end = first;
      for (const size_t more : {3 * kKiB, 60 * kKiB, 128 * kKiB, 4000 * kKiB}) {
        queue.Append(Counted(more, end));
        end += more;
        ASSERT_EQ(queue.size(), end - consumed);
        ExpectCounted(queue.bytes(), consumed);
      }
    }
  }
}

// Given a queue with a part of something large. When room is made for it. Expect no more memory than that
// takes.
TEST(ByteQueue, GrowsNoFurtherThanToTheTotal) {
  const size_t total = 3000 * kKiB;
  ByteQueue queue;
  size_t end = 0;
  while (end < total - 32 * kKiB) {
    queue.ReserveOf(total, 32 * kKiB);
    EXPECT_LE(queue.capacity(), total);
    queue.Append(Counted(32 * kKiB, end));
    end += 32 * kKiB;
  }
  ExpectCounted(queue.bytes(), 0);
}

// Given a queue that may keep little. When all was consumed. Expect that it gives large memory back, and
// keeps small memory.
TEST(ByteQueue, KeepsLittleWhenItIsEmpty) {
  ByteQueue queue(128 * kKiB);
  queue.Append(Counted(100 * kKiB, 0));
  queue.Clear();
  EXPECT_EQ(queue.capacity(), 100 * kKiB);
  queue.Append(Counted(300 * kKiB, 0));
  queue.Clear();
  EXPECT_EQ(queue.capacity(), 0u);
  queue.Append(Counted(5, 0));
  ExpectCounted(queue.bytes(), 0);
}

}  // namespace
}  // namespace farside::fabric::tcp
