#include "check/exhaustive/request.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"

namespace farside::check::exhaustive {
namespace {

using fabric::Verb;
using fabric::VerbKind;

bool IsTorn(const Verb& verb, const Freedoms& freedoms) {
  return (verb.kind == VerbKind::kRead && freedoms.tear_reads) ||
         (verb.kind == VerbKind::kWrite && freedoms.tear_writes);
}

// Whether the contract promises that the lines of this READ are sampled within a short window.
bool HasWindow(const Verb& verb) {
  if (verb.kind != VerbKind::kRead || verb.size == 0 || verb.size > fabric::kWindowBytes) return false;
  return verb.at.offset / fabric::kPageBytes == (verb.at.offset + verb.size - 1) / fabric::kPageBytes;
}

void CutIntoPieces(Request& request, uint32_t verb_index, const Freedoms& freedoms) {
  const Verb& verb = request.verbs[verb_index];
  const uint64_t end = verb.at.offset + verb.size;
  uint64_t from = verb.at.offset;
  do {
    uint64_t to = end;
    if (IsTorn(verb, freedoms)) to = std::min(end, (from / fabric::kLineBytes + 1) * fabric::kLineBytes);
    request.pieces.push_back({.verb = verb_index,
                              .offset = from,
                              .bytes = to - from,
                              .at = from - verb.at.offset,
                              .answer_at = request.answer_bytes + (from - verb.at.offset)});
    from = to;
  } while (from < end);
}

uint64_t PiecesOf(const Request& request, size_t verb) {
  uint64_t pieces = 0;
  for (size_t i = 0; i < request.pieces.size(); ++i) {
    if (request.pieces[i].verb == verb) pieces |= uint64_t{1} << i;
  }
  return pieces;
}

void OrderPieces(Request& request, const Freedoms& freedoms) {
  for (Piece& piece : request.pieces) {
    for (size_t earlier = 0; earlier < piece.verb; ++earlier) {
      if (MustPrecede(request.verbs[earlier], request.verbs[piece.verb], freedoms.ordered_reads)) {
        piece.after |= PiecesOf(request, earlier);
      }
    }
    for (size_t i = 0; i < request.pieces.size(); ++i) {
      if ((piece.after >> i & 1) != 0) piece.after |= request.pieces[i].after;
    }
  }
}

// The words that bytes from offset on stand in.
uint64_t WordBits(uint64_t offset, size_t bytes) {
  if (bytes == 0) return 0;
  const uint64_t first = offset / 8;
  const uint64_t last = (offset + bytes - 1) / 8;
  if (last - first >= 63) return ~uint64_t{0};
  return std::rotl(~uint64_t{0} >> (63 - (last - first)), static_cast<int>(first % 64));
}

// The words that a piece touches, as offsets: from the first one up to the end of the last one.
uint64_t FirstWord(const Piece& piece) { return piece.offset / 8 * 8; }
uint64_t EndOfWords(const Piece& piece) { return (piece.offset + piece.bytes + 7) / 8 * 8; }

bool Overlap(const Piece& a, const Piece& b) {
  if ((a.words & b.words) == 0) return false;
  return FirstWord(a) < EndOfWords(b) && FirstWord(b) < EndOfWords(a);
}

// Whether the piece would change a word from `from` up to `to`, which it touches.
bool Changes(const Request& request, const Piece& piece, uint64_t from, uint64_t to,
             std::span<const std::byte> region) {
  const Verb& verb = request.verbs[piece.verb];
  if (verb.kind == VerbKind::kRead) return false;
  if (IsAtomic(verb.kind)) {
    const uint64_t old = LoadU64(region.data() + piece.offset);
    return Succeeds(verb, old) && NewWord(verb, old) != old;
  }
  from = std::max(from, piece.offset);
  to = std::min(to, piece.offset + piece.bytes);
  return std::memcmp(region.data() + from, verb.from + piece.at + (from - piece.offset), to - from) != 0;
}

void FindConflicts(Request& request) {
  for (Piece& piece : request.pieces) {
    const Verb& verb = request.verbs[piece.verb];
    request.control |= IsControl(verb.kind);
    piece.words = IsControl(verb.kind) ? ~uint64_t{0} : WordBits(piece.offset, piece.bytes);
  }
  for (size_t i = 0; i < request.pieces.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      Piece& later = request.pieces[i];
      Piece& earlier = request.pieces[j];
      if ((later.after >> j & 1) != 0) continue;
      if (!request.control && !Overlap(later, earlier)) continue;
      if (request.verbs[later.verb].kind == VerbKind::kRead &&
          request.verbs[earlier.verb].kind == VerbKind::kRead) {
        continue;
      }
      later.rivals |= uint64_t{1} << j;
      earlier.rivals |= uint64_t{1} << i;
    }
  }
}

void CopyPayloads(Request& request) {
  size_t bytes = 0;
  for (const Verb& verb : request.verbs) bytes += verb.from == nullptr ? 0 : verb.size;
  request.payload.resize(bytes);
  std::byte* to = request.payload.data();
  for (Verb& verb : request.verbs) {
    verb.into = nullptr;
    verb.reply = nullptr;
    if (verb.from == nullptr) continue;
    if (verb.size > 0) std::memcpy(to, verb.from, verb.size);
    verb.from = to;
    to += verb.size;
  }
}

// The region as handlers of Calls see it.
class RegionMemory final : public fabric::NodeMemory {
 public:
  explicit RegionMemory(std::span<std::byte> region) : region_(region) {}
  uint64_t bytes() const override { return region_.size(); }
  uint64_t Load(uint64_t offset) const override { return LoadU64(region_.data() + offset); }
  void Store(uint64_t offset, uint64_t word) override { StoreU64(region_.data() + offset, word); }

 private:
  std::span<std::byte> region_;
};

}  // namespace

Request MakeRequest(fabric::Order order, std::span<const Verb> verbs, const Freedoms& freedoms) {
  Request request;
  request.order = order;
  request.verbs.assign(verbs.begin(), verbs.end());
  CopyPayloads(request);
  for (uint32_t i = 0; i < request.verbs.size(); ++i) {
    CutIntoPieces(request, i, freedoms);
    request.answer_bytes += AnswerBytes(request.verbs[i]);
  }
  if (request.TooLarge()) return request;
  request.all = ~uint64_t{0} >> (kMostPieces - request.pieces.size());
  if (order == fabric::Order::kInOrder) OrderPieces(request, freedoms);
  FindConflicts(request);
  for (size_t i = 0; i < request.verbs.size(); ++i) {
    if (request.verbs[i].kind != VerbKind::kRead) continue;
    const uint64_t pieces = PiecesOf(request, i);
    request.reads |= pieces;
    const bool torn = std::popcount(pieces) > 1 && HasWindow(request.verbs[i]);
    if (torn && request.windows.size() < kMostWindows) request.windows.push_back(pieces);
  }
  return request;
}

uint64_t Fingerprint(uint32_t connection, fabric::Order order, std::span<const Verb> verbs) {
  uint64_t hash = uint64_t{connection} << 8 | static_cast<uint64_t>(order);
  for (const Verb& verb : verbs) {
    const uint64_t fields[] = {static_cast<uint64_t>(verb.kind),
                               verb.fenced,
                               Index(verb.at.node),
                               verb.at.offset,
                               verb.size,
                               verb.expect,
                               verb.desired,
                               verb.compare_mask,
                               verb.swap_mask,
                               uint64_t{verb.call.engine} << 16 | verb.call.operation};
    hash = Hash64(std::as_bytes(std::span(fields)), hash);
    if (verb.from != nullptr && verb.size > 0) hash = Hash64(std::span(verb.from, verb.size), hash);
  }
  return hash;
}

bool Conflict(const Request& request, const Piece& piece, const Request& other_request, const Piece& other,
              std::span<const std::byte> region) {
  if (request.control || other_request.control) return true;
  if (!Overlap(piece, other)) return false;
  const uint64_t from = std::max(FirstWord(piece), FirstWord(other));
  const uint64_t to = std::min(EndOfWords(piece), EndOfWords(other));
  return Changes(request, piece, from, to, region) || Changes(other_request, other, from, to, region);
}

void TakeEffect(const Request& request, const Piece& piece, std::span<std::byte> region,
                std::span<std::byte> answer) {
  const Verb& verb = request.verbs[piece.verb];
  std::byte* const at = region.data() + piece.offset;
  if (verb.kind == VerbKind::kRead) {
    std::copy_n(at, piece.bytes, answer.begin());
  } else if (verb.kind == VerbKind::kWrite) {
    std::copy_n(verb.from + piece.at, piece.bytes, at);
  } else {
    assert(IsAtomic(verb.kind));
    const uint64_t old = LoadU64(at);
    if (Succeeds(verb, old)) StoreU64(at, NewWord(verb, old));
    StoreU64(answer.data(), old);
  }
}

Result<std::string> RunHandler(const Verb& verb, fabric::ClientId caller, const fabric::CallTable* calls,
                               std::span<std::byte> region) {
  if (calls == nullptr) return Error(ErrorCode::kUnsupported, "the scenario has no handlers of Calls");
  RegionMemory memory(region);
  return calls->Handle(verb.call, memory, caller, AsText({verb.from, verb.size}));
}

}  // namespace farside::check::exhaustive
