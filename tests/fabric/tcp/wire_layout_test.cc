// The bytes of the tcp fabric, as docs/layouts/wire.md shows them.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "fabric/tcp/wire.h"

namespace farside::fabric::tcp::wire {
namespace {

std::vector<int> Numbers(std::span<const std::byte> bytes) {
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(static_cast<int>(byte));
  return numbers;
}

TEST(WireLayout, GoldenBytesOfAHello) {
  // Given the Hello of client 0x01020304. Expect exactly these bytes.
  Hello hello;
  hello.client = 0x01020304;
  const std::vector<int> expected = {'f', 'a', 'r', 's', 't', 'c', 'p', '1', 1, 0, 0, 0,
                                     4,   3,   2,   1,   0,   0,   0,   0,   0, 0, 0, 0};
  EXPECT_EQ(Numbers(std::as_bytes(std::span(&hello, 1))), expected);
}

TEST(WireLayout, GoldenBytesOfATrip) {
  // Given a trip of a CAS and a READ. Expect exactly the bytes of the page.
  std::array<std::byte, 8> into{};
  std::array<Verb, 2> verbs = {Cas(FarAddr(NodeId{0}, 64), 0, 5).Lower(),
                               Read(FarAddr(NodeId{0}, 128), into).Lower()};
  std::array<std::byte, 48> frame{};
  FrameHeader header;
  header.body_bytes = static_cast<uint32_t>(EncodedBytes(verbs[0]) + EncodedBytes(verbs[1]));
  header.verbs = 2;
  std::byte* end = Store(header, frame.data());
  for (const Verb& verb : verbs) end = EncodeVerb(verb, end);
  ASSERT_EQ(end, frame.data() + frame.size());
  const std::vector<int> expected = {0x28, 0, 0, 0, 2, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 2,  //
                                     0,    0, 0, 0, 0, 0, 0, 0, 5,    0, 0, 0, 0, 0, 0, 0,  //
                                     0x80, 0, 0, 0, 0, 0, 0, 0, 8,    0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(Numbers(frame), expected);
  // Given its reply. Expect the answers of the page.
  const std::array<int, 16> reply = {0, 0, 0, 0, 0, 0, 0, 0, 'f', 'a', 'r', 's', 'i', 'd', 'e', '!'};
  std::array<std::byte, 16> body{};
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<std::byte>(reply[i]);
  ASSERT_TRUE(DecodeAnswers(verbs, NodeId{0}, body));
  EXPECT_EQ(verbs[0].old, 0u);
  EXPECT_EQ(std::memcmp(into.data(), "farside!", 8), 0);
}

}  // namespace
}  // namespace farside::fabric::tcp::wire
