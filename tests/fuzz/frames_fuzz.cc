// Frames and replies of TCP: what a node takes from a client, and a client from a node. The input is the body
// behind a header, which comes first.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/memory/line_memory.h"
#include "fabric/op.h"
#include "fabric/tcp/wire.h"
#include "tests/fabric/tcp/world.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

using namespace fabric;  // NOLINT(google-build-using-namespace): verbs and addresses
namespace wire = fabric::tcp::wire;

constexpr uint64_t kRegionBytes = 4096;
constexpr size_t kMostInput = size_t{1} << 20;  // libFuzzer's are smaller, and ours

FarAddr At(uint64_t offset) { return FarAddr(NodeId{0}, offset); }

// A node's memory of exactly its size, so that AddressSanitizer sees what leaves it.
struct Node {
  alignas(kLineBytes) std::array<std::byte, kRegionBytes> region{};
  memory::StripeTable stripes;
  memory::LineMemory memory{region, stripes};
};

void Execute(wire::Frame& frame) {
  const auto node = std::make_unique<Node>();
  uint64_t answered = 0;
  for (Verb& verb : std::span(frame.verbs).first(frame.count)) {
    if (IsControl(verb.kind)) {
      // The request of a Call is read.
      const std::string request(reinterpret_cast<const char*>(verb.from),
                                verb.from == nullptr ? 0 : verb.size);
      Require(request.size() <= kMostInput, "a request is not longer than its frame");
      continue;
    }
    Require(IsInBounds(verb, std::array{kRegionBytes}), "a verb of a good frame is inside the region");
    std::vector<std::byte> into(verb.kind == VerbKind::kRead ? verb.size : 0);
    if (verb.kind == VerbKind::kRead) verb.into = into.data();
    answered += wire::AnswerBytes(verb);
    node->memory.Prefetch(verb);
    Require(node->memory.Execute(verb), "memory that no other client holds is not waited for");
  }
  Require(frame.has_control || answered == frame.answer_bytes, "answers have the size that was announced");
}

void TryFrame(std::span<const std::byte> bytes) {
  const auto header = wire::Load<wire::FrameHeader>(bytes.data());
  if (wire::CheckHeader(header) != nullptr) return;
  const std::span<const std::byte> rest = bytes.subspan(sizeof header);
  if (rest.size() < header.body_bytes) return;
  const std::vector<std::byte> body(rest.begin(), rest.begin() + header.body_bytes);  // its exact size
  wire::GuessWhatIsTouched(body, kRegionBytes, [](uint64_t offset, uint64_t size, bool) {
    Require(size <= kRegionBytes && offset <= kRegionBytes - size, "what is fetched ahead is in the region");
  });
  const auto frame = std::make_unique<wire::Frame>();
  if (wire::DecodeFrame(header, body, kRegionBytes, *frame) == nullptr) Execute(*frame);
}

void TryReply(std::span<const std::byte> bytes) {
  const auto header = wire::Load<wire::ReplyHeader>(bytes.data());
  if (wire::CheckHeader(header) != nullptr) return;
  static_cast<void>(wire::CodeOf(header.status));
  const std::span<const std::byte> rest = bytes.subspan(sizeof header);
  const std::vector<std::byte> body(rest.begin(), rest.end());
  std::array<std::byte, 21> read{};
  std::string reply;
  std::array<Verb, 3> memory_verbs = {Read(At(3), std::span(read)).Lower(), Faa(At(64), 1).Lower(),
                                      Cas(At(128), 0, 1).Lower()};
  static_cast<void>(wire::DecodeAnswers(memory_verbs, NodeId{0}, body));
  Verb call;
  call.kind = VerbKind::kCall;
  call.reply = &reply;
  static_cast<void>(wire::DecodeAnswers(std::span(&call, 1), NodeId{0}, body));
}

Bytes FrameOf(const std::vector<Verb>& verbs) {
  Bytes frame;
  AppendBytes(frame, tcp::FrameOf(verbs));
  return frame;
}

}  // namespace

std::vector<Bytes> Seeds() {
  static const std::array<uint64_t, 9> payload = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::array<std::byte, 100> into{};
  const Verb read = Read(At(60), std::span(into)).Lower();
  const Verb write = WriteObject(At(1000), payload).Lower();
  const Verb ragged = Write(At(1003), std::as_bytes(std::span(payload)).first(13)).Lower();
  const Verb atomic = MaskedCas(At(8), 0, 1, 0xff, 2, 0xff00).Lower();
  const std::vector<Verb> many(kMaxVerbsPerTrip, Faa(At(4088), 1).Lower());
  std::vector<Bytes> seeds = {FrameOf({read}), FrameOf({write, read, ragged}), FrameOf({atomic}),
                              FrameOf({FenceVerb(NodeId{0}, ClientId{7}).Lower(), write}), FrameOf(many)};
  for (const wire::ReplyKind kind : {wire::ReplyKind::kAnswers, wire::ReplyKind::kError}) {
    Bytes reply;
    Append(reply,
           wire::ReplyHeader{.body_bytes = 40, .kind = kind, .status = kind == wire::ReplyKind::kError});
    reply.resize(reply.size() + 40);
    seeds.push_back(reply);
  }
  Bytes called;
  Append(called, wire::ReplyHeader{.body_bytes = 16});
  Append(called, uint64_t{5});
  Append(called, uint64_t{0x6f6c6c6568});
  seeds.push_back(called);
  return seeds;
}

void Try(Input input) {
  const std::span<const std::byte> bytes = std::as_bytes(input.rest());
  if (bytes.size() < sizeof(wire::FrameHeader)) return;
  TryFrame(bytes);
  TryReply(bytes);
}

}  // namespace farside::fuzz
