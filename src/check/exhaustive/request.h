// A trip as the search sees it: a copy of its verbs, cut into the pieces that take effect one by one, and
// the order in which they may.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "check/exhaustive/scenario.h"
#include "fabric/service.h"
#include "fabric/trip.h"
#include "fabric/verb.h"
#include "farside/result.h"

namespace farside::check::exhaustive {

inline constexpr size_t kMostPieces = 64;  // of one trip; sets of pieces are words
inline constexpr size_t kMostWindows = 8;  // of one trip

// A set with one member.
constexpr uint64_t Bit(uint32_t i) { return uint64_t{1} << i; }

struct Piece {
  uint32_t verb = 0;
  uint64_t offset = 0;  // in the region
  size_t bytes = 0;
  size_t at = 0;         // of its bytes within those of the verb
  size_t answer_at = 0;  // in the answers of the trip, if it is answered
  uint64_t after = 0;    // pieces that must have taken effect before

  // Words of the region that it reads or writes, as bits: word w is bit w % 64. Pieces without a common bit
  // have no common word.
  uint64_t words = 0;
  uint64_t rivals = 0;  // pieces of the same trip, neither before nor after, with which its order may matter
};

struct Request {
  uint32_t actor = 0;
  uint32_t connection = 0;  // of the actor, from 0 on
  fabric::Order order = fabric::Order::kInOrder;
  std::vector<fabric::Verb> verbs;  // `from` points into `payload`
  std::vector<std::byte> payload;

  std::vector<Piece> pieces;
  uint64_t all = 0;               // the set of all pieces
  uint64_t reads = 0;             // the pieces of READs
  size_t answer_bytes = 0;        // READ bytes and old words, in the order of the verbs
  std::vector<uint64_t> windows;  // the pieces of each READ that is sampled within a window

  bool control = false;  // there is a CALL or a FENCE

  bool TooLarge() const { return pieces.size() > kMostPieces; }
  bool MayStep(size_t piece, uint64_t done) const {
    return (done >> piece & 1) == 0 && (pieces[piece].after & ~done) == 0;
  }
};

// actor and connection are left to the caller.
Request MakeRequest(fabric::Order order, std::span<const fabric::Verb> verbs, const Freedoms& freedoms);

// Equal for equal trips.
uint64_t Fingerprint(uint32_t connection, fabric::Order order, std::span<const fabric::Verb> verbs);

// The bytes of the answer of a verb.
inline size_t AnswerBytes(const fabric::Verb& verb) {
  return fabric::IsAnswered(verb.kind) ? static_cast<size_t>(verb.size) : 0;
}

// What a piece does to a region. Not for CALL and FENCE.
//
// `answer` takes what the verb answers with this piece: its bytes of a READ, the old word of an atomic.
void TakeEffect(const Request& request, const Piece& piece, std::span<std::byte> region,
                std::span<std::byte> answer);

// Whether the order of the two matters, if both take effect next: one changes a word that the other reads or
// writes. A WRITE of what is there already changes nothing, nor does an atomic that fails. CALL and FENCE may
// change everything.
bool Conflict(const Request& request, const Piece& piece, const Request& other_request, const Piece& other,
              std::span<const std::byte> region);

// What a CALL does to a region, and its reply. `calls` may be null.
Result<std::string> RunHandler(const fabric::Verb& verb, fabric::ClientId caller,
                               const fabric::CallTable* calls, std::span<std::byte> region);

}  // namespace farside::check::exhaustive
