// What goes over a connection between a client and a memory node. docs/layouts/wire.md draws it with an
// example.
//
//   client:  Hello | frame | frame | ...          one frame per trip and node
//   node:    Welcome | reply | reply | ...        one reply per frame, in the order of the frames
//
// All numbers are little-endian. Lengths of frames, and of everything in them, are multiples of 8.
//
//   Frame:   FrameHeader | verb | verb | ...
//            READ        head, size
//            WRITE       head, size, bytes, padding to 8
//            CAS         head, expect, desired
//            masked CAS  head, expect, desired, compare mask, swap mask
//            FAA         head, delta
//            Call        head (its offset is the CallId), size, request, padding to 8; alone in its frame
//            FENCE       head (its offset is 0), victim
//
//   Reply:   ReplyHeader | what its kind says
//            kAnswers    of each verb in order: READ the bytes, padded to 8; an atomic the old word;
//                        Call a size, then the reply, padded to 8; WRITE and FENCE nothing
//            kError      why the trip failed, as text
//            kGoodbye    the last one: no frame without an answer has taken effect, or will
//
// The functions here do no I/O and trust nothing: whatever the bytes are, they either decode or are refused.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/bits.h"
#include "fabric/trip.h"
#include "fabric/verb.h"
#include "farside/result.h"

namespace farside::fabric::tcp::wire {

static_assert(std::endian::native == std::endian::little,
              "the structs below are sent as they stand in memory");

inline constexpr uint64_t kMagic = 0x3170637473726166;  // "farstcp1" as bytes
// Raised whenever anything below changes. The first 12 bytes of Hello and of Welcome never do.
inline constexpr uint32_t kVersion = 1;

// Bounds of everything after the header, of a frame and of a reply. It leaves room for a WRITE of 64 MiB with
// company.
inline constexpr uint64_t kMaxBodyBytes = uint64_t{72} << 20;
inline constexpr uint64_t kMaxMessageBytes = 1024;  // texts for people

enum class Access : uint8_t {
  kReadWrite = 0,
  kReadOnly = 1,
};

//   0          8         12        16        20        24
//   | magic    | version | client  | flags   | zero    |
struct Hello {
  static constexpr uint32_t kLookOnly = 1;  // wants the Welcome and nothing else; client is 0

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t client = 0;
  uint32_t flags = 0;
  uint32_t zero = 0;
};
static_assert(sizeof(Hello) == 24 && offsetof(Hello, client) == 12 && offsetof(Hello, flags) == 16);

//   0       8         12       13       14     16          32             40              44     48
//   | magic | version | status | access | zero | region id | region bytes | message bytes | zero | message
struct Welcome {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint8_t status = 0;  // 0: come in; else a code of StatusOf, and the message says why
  Access access = Access::kReadWrite;
  uint16_t zero = 0;
  std::array<uint64_t, 2> region_id{};
  uint64_t region_bytes = 0;
  uint32_t message_bytes = 0;
  uint32_t zero_too = 0;
};
static_assert(sizeof(Welcome) == 48 && offsetof(Welcome, region_id) == 16 &&
              offsetof(Welcome, message_bytes) == 40);

//   0            4       5       8
//   | body bytes | verbs | zero  |
struct FrameHeader {
  uint32_t body_bytes = 0;  // a multiple of 8, at most kMaxBodyBytes
  uint8_t verbs = 0;        // 1 to 64
  uint8_t zero = 0;
  uint16_t zero_too = 0;
};
static_assert(sizeof(FrameHeader) == 8 && offsetof(FrameHeader, verbs) == 4);

enum class ReplyKind : uint8_t {
  kAnswers = 0,
  kError = 1,
  kGoodbye = 2,
};

//   0            4      5        6      8
//   | body bytes | kind | status | zero |
struct ReplyHeader {
  uint32_t body_bytes = 0;  // at most kMaxBodyBytes; a multiple of 8 in answers
  ReplyKind kind = ReplyKind::kAnswers;
  uint8_t status = 0;  // of StatusOf; 0 in answers
  uint16_t zero = 0;
};
static_assert(sizeof(ReplyHeader) == 8 && offsetof(ReplyHeader, kind) == 4);

// The first word of every verb.
//   63..61   60            59..56   55..0
//   zero     unreachable   kind     offset into the region
struct VerbHead {
  using Offset = Field<0, 56>;
  using Kind = Field<56, 4>;
  using Unreachable = Field<60, 1>;  // of a WRITE
  using Zero = Field<61, 3>;
  static_assert(TilesWord<Offset, Kind, Unreachable, Zero>());
};
// In the offset of a Call.
struct CallWord {
  using Engine = Field<0, 16>;
  using Operation = Field<16, 16>;
  using Zero = Field<32, 32>;
  static_assert(TilesWord<Engine, Operation, Zero>());
};
static_assert(kVerbKinds <= VerbHead::Kind::kMax);

constexpr uint64_t Padded(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

// Codes of errors as they are sent; 0 is none. They stay what they are when the enumeration grows.
uint8_t StatusOf(ErrorCode code);
// Nothing if there is no such code.
std::optional<ErrorCode> CodeOf(uint8_t status);

// ---- a client's side ---------------------------------------------------------------------------------

// The bytes that `verb` takes in a frame and in a reply (without the reply of a Call, which is not known
// before).
uint64_t EncodedBytes(const Verb& verb);
uint64_t AnswerBytes(const Verb& verb);
// Writes `verb` to `to`, which has room for EncodedBytes, and returns the end. The addresses were checked
// before.
std::byte* EncodeVerb(const Verb& verb, std::byte* to);

// Takes the answers of those verbs that go to `node` out of a reply. False: the body does not fit them.
bool DecodeAnswers(std::span<Verb> verbs, NodeId node, std::span<const std::byte> body);

// ---- a node's side -----------------------------------------------------------------------------------

// A frame as it is executed. Verbs point into the body.
struct Frame {
  size_t count = 0;
  uint64_t answer_bytes = 0;  // without the reply of a Call
  bool mutates = false;       // has a verb that may change something
  bool has_control = false;   // has a Call or a FENCE
  std::array<Verb, kMaxVerbsPerTrip> verbs;
};

// What is wrong with a header; null if nothing is.
const char* CheckHeader(const FrameHeader& header);
const char* CheckHeader(const ReplyHeader& header);
// What is wrong with a frame; null if nothing is, and then `frame` holds all of it, and every address lies
// inside a region of `region_bytes`.
const char* DecodeFrame(const FrameHeader& header, std::span<const std::byte> body, uint64_t region_bytes,
                        Frame& frame);

// Calls `touch(offset, size, mutates)` for what a frame will touch in a region, as far as that is easy to
// tell. Checks nothing but that it stays inside `body` and the region: the frame may yet turn out to be
// nonsense.
template <class Touch>
void GuessWhatIsTouched(std::span<const std::byte> body, uint64_t region_bytes, Touch touch);

// ---- both

template <class T>
T Load(const std::byte* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
std::byte* Store(const T& value, std::byte* to) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof(T));
  return to + sizeof(T);
}

template <class Touch>
void GuessWhatIsTouched(std::span<const std::byte> body, uint64_t region_bytes, Touch touch) {
  constexpr size_t kReadBytes = 2 * sizeof(uint64_t);
  while (body.size() >= kReadBytes) {
    const auto head = Load<uint64_t>(body.data());
    const bool reads = VerbHead::Kind::Get(head) == static_cast<uint64_t>(VerbKind::kRead);
    const uint64_t offset = VerbHead::Offset::Get(head);
    const uint64_t size = reads ? Load<uint64_t>(body.data() + sizeof(uint64_t)) : sizeof(uint64_t);
    if (size <= region_bytes && offset <= region_bytes - size) touch(offset, size, !reads);
    if (!reads) return;  // the others have different lengths, and seldom much company
    body = body.subspan(kReadBytes);
  }
}

}  // namespace farside::fabric::tcp::wire
