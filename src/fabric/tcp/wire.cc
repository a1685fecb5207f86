#include "fabric/tcp/wire.h"

#include <cassert>
#include <string>

namespace farside::fabric::tcp::wire {
namespace {

constexpr uint64_t kWord = 8;

// Bytes that end at a place of their own: reads words, and knows how much is left.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : next_(bytes.data()), end_(next_ + bytes.size()) {}

  uint64_t left() const { return static_cast<uint64_t>(end_ - next_); }
  uint64_t Word() {
    assert(left() >= kWord);
    const auto word = Load<uint64_t>(next_);
    next_ += kWord;
    return word;
  }
  const std::byte* Skip(uint64_t bytes) {
    assert(left() >= bytes);
    const std::byte* const at = next_;
    next_ += bytes;
    return at;
  }

 private:
  const std::byte* next_;
  const std::byte* end_;
};

// How many words a verb has in a frame, with its head and without its bytes; 0 if there is no such kind.
constexpr uint64_t WordsOf(uint64_t kind) {
  switch (static_cast<VerbKind>(kind)) {
    case VerbKind::kRead:
    case VerbKind::kWrite:
    case VerbKind::kFaa:
    case VerbKind::kCall:
    case VerbKind::kFence: return 2;
    case VerbKind::kCas: return 3;
    case VerbKind::kMaskedCas: return 5;
  }
  return 0;
}

constexpr bool HasPayload(VerbKind kind) { return kind == VerbKind::kWrite || kind == VerbKind::kCall; }

bool Inside(uint64_t offset, uint64_t size, uint64_t region_bytes) {
  return size <= region_bytes && offset <= region_bytes - size;
}

const char* DecodeAtomic(Reader& reader, uint64_t region_bytes, Verb& verb) {
  verb.size = kWord;
  verb.expect = 0;
  verb.compare_mask = ~uint64_t{0};
  verb.swap_mask = ~uint64_t{0};
  if (verb.kind != VerbKind::kFaa) verb.expect = reader.Word();
  verb.desired = reader.Word();
  if (verb.kind == VerbKind::kMaskedCas) {
    verb.compare_mask = reader.Word();
    verb.swap_mask = reader.Word();
  }
  if (verb.at.offset % kWord != 0) return "an atomic that is not aligned";
  if (!Inside(verb.at.offset, kWord, region_bytes)) return "an atomic outside of the region";
  return nullptr;
}

const char* DecodeWrite(Reader& reader, uint64_t region_bytes, Verb& verb) {
  verb.size = reader.Word();
  if (!Inside(verb.at.offset, verb.size, region_bytes)) return "a WRITE outside of the region";
  if (verb.size > kMaxBodyBytes || Padded(verb.size) > reader.left())
    return "a WRITE of more bytes than came";
  verb.from = reader.Skip(Padded(verb.size));
  return nullptr;
}

const char* DecodeCall(Reader& reader, Verb& verb) {
  const uint64_t call = verb.at.offset;
  if (CallWord::Zero::Get(call) != 0) return "a Call with unknown bits";
  verb.call = CallId(static_cast<uint16_t>(CallWord::Engine::Get(call)),
                     static_cast<uint16_t>(CallWord::Operation::Get(call)));
  verb.at.offset = 0;
  verb.size = reader.Word();
  if (verb.size > kMaxBodyBytes || Padded(verb.size) > reader.left()) return "a Call of more bytes than came";
  verb.from = reader.Skip(Padded(verb.size));
  return nullptr;
}

const char* DecodeVerb(Reader& reader, uint64_t region_bytes, Verb& verb) {
  if (reader.left() < kWord) return "fewer verbs than it says";
  const uint64_t head = reader.Word();
  const uint64_t words = WordsOf(VerbHead::Kind::Get(head));
  if (words == 0) return "a verb of an unknown kind";
  if (VerbHead::Zero::Get(head) != 0) return "a verb with unknown bits";
  if (reader.left() < (words - 1) * kWord) return "a verb that ends too early";
  verb.kind = static_cast<VerbKind>(VerbHead::Kind::Get(head));
  verb.at = FarAddr(NodeId{0}, VerbHead::Offset::Get(head));
  verb.unreachable = VerbHead::Unreachable::Get(head) != 0;
  if (verb.unreachable && verb.kind != VerbKind::kWrite) return "a verb with unknown bits";
  switch (verb.kind) {
    case VerbKind::kRead:
      verb.size = reader.Word();
      return Inside(verb.at.offset, verb.size, region_bytes) ? nullptr : "a READ outside of the region";
    case VerbKind::kWrite: return DecodeWrite(reader, region_bytes, verb);
    case VerbKind::kCas:
    case VerbKind::kMaskedCas:
    case VerbKind::kFaa: return DecodeAtomic(reader, region_bytes, verb);
    case VerbKind::kCall: return DecodeCall(reader, verb);
    case VerbKind::kFence:
      verb.desired = reader.Word();
      if (verb.at.offset != 0) return "a FENCE with an address";
      return verb.desired <= ~uint32_t{0} ? nullptr : "a FENCE of an impossible client";
  }
  return "a verb of an unknown kind";
}

}  // namespace

uint8_t StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return 1;
    case ErrorCode::kNotFound: return 2;
    case ErrorCode::kAlreadyExists: return 3;
    case ErrorCode::kOutOfMemory: return 4;
    case ErrorCode::kUnavailable: return 5;
    case ErrorCode::kOutcomeUnknown: return 6;
    case ErrorCode::kFenced: return 7;
    case ErrorCode::kContended: return 8;
    case ErrorCode::kCorrupt: return 9;
    case ErrorCode::kVersionMismatch: return 10;
    case ErrorCode::kPermissionDenied: return 11;
    case ErrorCode::kUnsupported: return 12;
  }
  return 5;
}

std::optional<ErrorCode> CodeOf(uint8_t status) {
  constexpr std::array kCodes = {
      ErrorCode::kInvalidArgument, ErrorCode::kNotFound,         ErrorCode::kAlreadyExists,
      ErrorCode::kOutOfMemory,     ErrorCode::kUnavailable,      ErrorCode::kOutcomeUnknown,
      ErrorCode::kFenced,          ErrorCode::kContended,        ErrorCode::kCorrupt,
      ErrorCode::kVersionMismatch, ErrorCode::kPermissionDenied, ErrorCode::kUnsupported,
  };
  if (status == 0 || status > kCodes.size()) return std::nullopt;
  return kCodes[status - 1];
}

uint64_t EncodedBytes(const Verb& verb) {
  const uint64_t words = WordsOf(static_cast<uint64_t>(verb.kind)) * kWord;
  return HasPayload(verb.kind) ? words + Padded(verb.size) : words;
}

uint64_t AnswerBytes(const Verb& verb) {
  if (verb.kind == VerbKind::kRead) return Padded(verb.size);
  return IsAtomic(verb.kind) || verb.kind == VerbKind::kCall ? kWord : 0;
}

std::byte* EncodeVerb(const Verb& verb, std::byte* to) {
  uint64_t head = VerbHead::Kind::Set(0, static_cast<uint64_t>(verb.kind));
  if (verb.kind == VerbKind::kCall) {
    head |= CallWord::Operation::Set(CallWord::Engine::Set(0, verb.call.engine), verb.call.operation);
  } else if (verb.kind != VerbKind::kFence) {
    head = VerbHead::Offset::Set(head, verb.at.offset);
  }
  if (verb.kind == VerbKind::kWrite && verb.unreachable) head = VerbHead::Unreachable::Set(head, 1);
  to = Store(head, to);
  switch (verb.kind) {
    case VerbKind::kRead: return Store(verb.size, to);
    case VerbKind::kWrite:
    case VerbKind::kCall: {
      to = Store(verb.size, to);
      if (verb.size == 0) return to;
      const uint64_t padded = Padded(verb.size);
      std::memset(to + padded - kWord, 0, kWord);
      std::memcpy(to, verb.from, verb.size);
      return to + padded;
    }
    case VerbKind::kMaskedCas:
      to = Store(verb.expect, to);
      to = Store(verb.desired, to);
      to = Store(verb.compare_mask, to);
      return Store(verb.swap_mask, to);
    case VerbKind::kCas: to = Store(verb.expect, to); return Store(verb.desired, to);
    case VerbKind::kFaa:
    case VerbKind::kFence: return Store(verb.desired, to);
  }
  return to;
}

bool DecodeAnswers(std::span<Verb> verbs, NodeId node, std::span<const std::byte> body) {
  Reader reader(body);
  for (Verb& verb : verbs) {
    if (verb.at.node != node) continue;
    if (reader.left() < AnswerBytes(verb)) return false;
    if (verb.kind == VerbKind::kRead) {
      const std::byte* const bytes = reader.Skip(Padded(verb.size));
      if (verb.size != 0) std::memcpy(verb.into, bytes, verb.size);
    } else if (IsAtomic(verb.kind)) {
      verb.old = reader.Word();
    } else if (verb.kind == VerbKind::kCall) {
      const uint64_t size = reader.Word();
      if (size > kMaxBodyBytes || Padded(size) > reader.left()) return false;
      verb.reply->assign(reinterpret_cast<const char*>(reader.Skip(Padded(size))), size);
    }
  }
  return reader.left() == 0;
}

const char* CheckHeader(const FrameHeader& header) {
  if ((header.zero | header.zero_too) != 0) return "a header with unknown bits";
  if (header.verbs == 0 || header.verbs > kMaxVerbsPerTrip) return "an impossible number of verbs";
  if (header.body_bytes % kWord != 0) return "an odd length";
  if (header.body_bytes > kMaxBodyBytes) return "more bytes than are allowed";
  return nullptr;
}

const char* CheckHeader(const ReplyHeader& header) {
  if (header.zero != 0) return "a header with unknown bits";
  if (header.body_bytes > kMaxBodyBytes) return "more bytes than are allowed";
  switch (header.kind) {
    case ReplyKind::kAnswers: return header.status == 0 ? nullptr : "answers with an error";
    case ReplyKind::kError:
    case ReplyKind::kGoodbye: break;
    default: return "a reply of an unknown kind";
  }
  if (header.body_bytes > kMaxMessageBytes) return "a message that is too long";
  return CodeOf(header.status).has_value() ? nullptr : "an unknown error";
}

const char* DecodeFrame(const FrameHeader& header, std::span<const std::byte> body, uint64_t region_bytes,
                        Frame& frame) {
  if (const char* wrong = CheckHeader(header)) return wrong;
  if (body.size() != header.body_bytes) return "another length than it says";
  Reader reader(body);
  frame.count = header.verbs;
  frame.answer_bytes = 0;
  frame.mutates = false;
  frame.has_control = false;
  for (size_t i = 0; i < frame.count; ++i) {
    Verb& verb = frame.verbs[i];
    if (const char* wrong = DecodeVerb(reader, region_bytes, verb)) return wrong;
    frame.mutates |= Mutates(verb.kind);
    frame.has_control |= IsControl(verb.kind);
    if (verb.kind == VerbKind::kCall && frame.count != 1) return "a Call with company";
    frame.answer_bytes += AnswerBytes(verb);  // each is at most a region, so 64 of them do not overflow
    if (frame.answer_bytes > kMaxBodyBytes) return "more answers than fit into a reply";
  }
  return reader.left() == 0 ? nullptr : "bytes behind its last verb";
}

}  // namespace farside::fabric::tcp::wire
