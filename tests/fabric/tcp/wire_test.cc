// Frames and replies as bytes: what is encoded decodes, and everything else is refused.
#include "fabric/tcp/wire.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/fabric/tcp/hostile_frames.h"
#include "tests/fabric/tcp/world.h"
#include "tests/support/sanitized.h"

namespace farside::fabric::tcp::wire {
namespace {

constexpr uint64_t kRegion = 4096;

const char* Decode(std::span<const std::byte> bytes, Frame& frame) {
  return DecodeFrame(Load<FrameHeader>(bytes.data()), bytes.subspan(sizeof(FrameHeader)), kRegion, frame);
}

TEST(TcpWire, AFrameDecodesToTheVerbsThatWereEncoded) {
  // Given one verb of each kind that may stand beside others.
  const std::array<std::byte, 13> payload = {std::byte{1}, std::byte{2}, std::byte{3}};
  const std::vector<Verb> verbs = {
      Read(At(8), {static_cast<std::byte*>(nullptr), 100}).Lower(),
      Write(At(3), payload).Lower(),
      Unreachable(Write(At(64), payload)).Lower(),
      Cas(At(16), 5, 6).Lower(),
      MaskedCas(At(24), 0, 1, 2, 3, 4).Lower(),
      Faa(At(32), 9).Lower(),
      FenceVerb(NodeId{0}, ClientId{77}).Lower(),
  };
  const Bytes bytes = FrameOf(verbs);
  // Expect the same verbs, and what they need for their answers.
  const auto frame = std::make_unique<Frame>();
  ASSERT_EQ(Decode(bytes, *frame), nullptr);
  ASSERT_EQ(frame->count, verbs.size());
  EXPECT_TRUE(frame->mutates);
  EXPECT_TRUE(frame->has_control);
  EXPECT_EQ(frame->answer_bytes, 104u + 3 * 8);
  for (size_t i = 0; i < verbs.size(); ++i) {
    SCOPED_TRACE(i);
    const Verb& decoded = frame->verbs[i];
    EXPECT_EQ(decoded.kind, verbs[i].kind);
    EXPECT_EQ(decoded.at.offset, verbs[i].at.offset);
    EXPECT_EQ(decoded.unreachable, verbs[i].unreachable);
    if (verbs[i].kind != VerbKind::kFence) {
      EXPECT_EQ(decoded.size, verbs[i].size);
    }
    if (verbs[i].kind == VerbKind::kWrite) {
      EXPECT_EQ(std::memcmp(decoded.from, payload.data(), payload.size()), 0);
    }
    if (IsAtomic(verbs[i].kind)) {
      EXPECT_EQ(decoded.expect, verbs[i].expect);
      EXPECT_EQ(decoded.compare_mask, verbs[i].compare_mask);
      EXPECT_EQ(decoded.swap_mask, verbs[i].swap_mask);
    }
    if (IsAtomic(verbs[i].kind) || verbs[i].kind == VerbKind::kFence) {
      EXPECT_EQ(decoded.desired, verbs[i].desired);
    }
  }
}

TEST(TcpWire, ACallDecodesToItsRequest) {
  // Given a Call with a request of bytes that need padding.
  CallVerb call(NodeId{0}, CallId(0xfffe, 0x1234), "hello");
  // Expect its id and its request.
  const Bytes bytes = FrameOf({call.Lower()});
  const auto frame = std::make_unique<Frame>();
  ASSERT_EQ(Decode(bytes, *frame), nullptr);
  EXPECT_EQ(frame->verbs[0].call, CallId(0xfffe, 0x1234));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(frame->verbs[0].from), frame->verbs[0].size), "hello");
}

TEST(TcpWire, HostileFramesAreRefusedByName) {
  // Given frames with one thing wrong in each.
  for (const HostileFrame& hostile : HostileFrames(kRegion)) {
    SCOPED_TRACE(hostile.name);
    // Expect that each is refused for that reason.
    const auto header = Load<FrameHeader>(hostile.bytes.data());
    const auto frame = std::make_unique<Frame>();
    const char* wrong = CheckHeader(header);
    if (wrong == nullptr) wrong = Decode(hostile.bytes, *frame);
    ASSERT_NE(wrong, nullptr);
    EXPECT_EQ(std::string(wrong), hostile.expected);
  }
}

TEST(TcpWire, AnswersFitTheirVerbsOrAreRefused) {
  // Given a trip to two nodes, and the answers of one of them.
  uint64_t word = 0;
  std::string reply;
  std::vector<Verb> verbs = {Faa(At(0, 0), 1).Lower(),
                             Read(At(0, 1), std::as_writable_bytes(std::span(&word, 1))).Lower()};
  Bytes body = BytesOf(uint64_t{42});
  // Expect that they are taken as those of the node that they come from.
  EXPECT_TRUE(DecodeAnswers(verbs, NodeId{0}, body));
  EXPECT_EQ(verbs[0].old, 42u);
  EXPECT_EQ(word, 0u);
  EXPECT_TRUE(DecodeAnswers(verbs, NodeId{1}, body));
  EXPECT_EQ(word, 42u);
  // Expect that too few and too many bytes are refused.
  EXPECT_FALSE(DecodeAnswers(verbs, NodeId{0}, {}));
  Append(body, BytesOf(uint64_t{1}));
  EXPECT_FALSE(DecodeAnswers(verbs, NodeId{0}, body));
  // Expect that a reply of a Call that says to be longer than it is, is refused.
  CallVerb call(NodeId{0}, CallId(1, 1), "");
  std::vector<Verb> calls = {call.Lower()};
  EXPECT_FALSE(DecodeAnswers(calls, NodeId{0}, BytesOf(uint64_t{8})));
  EXPECT_FALSE(DecodeAnswers(calls, NodeId{0}, BytesOf(~uint64_t{0})));
  EXPECT_FALSE(DecodeAnswers(calls, NodeId{0}, BytesOf(~uint64_t{0} - 6)));
  EXPECT_TRUE(DecodeAnswers(calls, NodeId{0}, BytesOf(uint64_t{0})));
}

TEST(TcpWire, HeadersOfRepliesAreChecked) {
  // Given headers with one thing wrong in each. Expect that they are refused.
  EXPECT_EQ(CheckHeader(ReplyHeader{}), nullptr);
  EXPECT_NE(CheckHeader(ReplyHeader{.zero = 1}), nullptr);
  EXPECT_NE(CheckHeader(ReplyHeader{.body_bytes = kMaxBodyBytes + 1}), nullptr);
  EXPECT_NE(CheckHeader(ReplyHeader{.status = 1}), nullptr);
  EXPECT_NE(CheckHeader(ReplyHeader{.kind = static_cast<ReplyKind>(3)}), nullptr);
  EXPECT_EQ(CheckHeader(ReplyHeader{.kind = ReplyKind::kError, .status = 1}), nullptr);
  EXPECT_NE(CheckHeader(ReplyHeader{.kind = ReplyKind::kError, .status = 0}), nullptr);
  EXPECT_NE(CheckHeader(ReplyHeader{.kind = ReplyKind::kGoodbye, .status = 200}), nullptr);
  EXPECT_NE(
      CheckHeader(ReplyHeader{.body_bytes = kMaxMessageBytes + 1, .kind = ReplyKind::kError, .status = 1}),
      nullptr);
}

TEST(TcpWire, CodesOfErrorsComeBackAsTheyWereSent) {
  // Given every code that there is. Expect that it survives the way, and that 0 and unknown numbers are none.
  for (int code = 0; code <= static_cast<int>(ErrorCode::kUnsupported); ++code) {
    EXPECT_EQ(CodeOf(StatusOf(static_cast<ErrorCode>(code))), static_cast<ErrorCode>(code));
  }
  EXPECT_EQ(CodeOf(0), std::nullopt);
  EXPECT_EQ(CodeOf(13), std::nullopt);
}

TEST(TcpWire, MutatedFramesDecodeToVerbsInsideOrAreRefused) {
  // Given good frames in which random bytes were changed, and cut or extended.
  const auto frame = std::make_unique<Frame>();
  for (uint64_t seed = 1; seed <= 200'000 / kFewer; ++seed) {
    Random random(seed);
    Bytes bytes = RandomFrame(random, kRegion);
    Mutate(random, bytes);
    if (bytes.size() < sizeof(FrameHeader)) continue;
    if (Decode(bytes, *frame) != nullptr) continue;
    // Expect of those that are accepted, that every address lies inside.
    ASSERT_LE(frame->count, kMaxVerbsPerTrip) << "seed " << seed;
    for (size_t i = 0; i < frame->count; ++i) {
      const Verb& verb = frame->verbs[i];
      if (verb.kind == VerbKind::kWrite || verb.kind == VerbKind::kCall) {
        ASSERT_GE(verb.from, bytes.data()) << "seed " << seed;
        ASSERT_LE(verb.from + verb.size, bytes.data() + bytes.size()) << "seed " << seed;
      }
      if (IsControl(verb.kind)) continue;
      ASSERT_LE(verb.size, kRegion) << "seed " << seed;
      ASSERT_LE(verb.at.offset, kRegion - verb.size) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace farside::fabric::tcp::wire
