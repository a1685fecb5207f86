// The one-sided verbs, as engines write them down and as backends execute them.
//
//   co_await op.InOrder(Cas(lock, 0, me), Read<Bucket>(bucket));
//   co_await op.InOrder(Write(slot, bytes), Cas(lock, me, 0));
//
// A typed verb (ReadVerb<T>, AtomicVerb, ...) knows the type of its answer; Verb is the plain record that
// a backend sees. See docs/memory-model.md for what they promise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fabric/address.h"
#include "farside/result.h"

namespace farside::fabric {

enum class VerbKind : uint8_t { kRead, kWrite, kCas, kMaskedCas, kFaa, kCall, kFence };
inline constexpr size_t kVerbKinds = 7;
std::string_view Name(VerbKind kind);

// What a verb is for; trips are counted apart by it.
enum class Purpose : uint8_t {
  kIndex,        // reaching and changing the index
  kBlock,        // reading and writing key-value blocks
  kMaintenance,  // heartbeats, syncs, recovery
};
inline constexpr size_t kPurposes = 3;
std::string_view Name(Purpose purpose);

// Which handler of a node a Call asks for; see fabric/service.h.
struct CallId {
  constexpr CallId() = default;
  constexpr CallId(uint16_t engine_id, uint16_t operation_id) : engine(engine_id), operation(operation_id) {}
  uint16_t engine = 0;
  uint16_t operation = 0;
  friend constexpr auto operator<=>(const CallId&, const CallId&) = default;
};

// A verb as a backend executes it.
struct Verb {
  VerbKind kind = VerbKind::kRead;
  Purpose purpose = Purpose::kIndex;
  bool fenced = false;       // waits for every earlier verb of the trip; costs a round trip
  bool unreachable = false;  // WRITE to bytes that only this client can reach: needs no atomicity of lines
  CallId call;
  FarAddr at;
  uint64_t size = 0;  // bytes of a READ, a WRITE or a request; 8 for atomics

  std::byte* into = nullptr;        // READ: where the bytes go
  const std::byte* from = nullptr;  // WRITE and Call: the bytes
  std::string* reply = nullptr;     // Call: the answer

  // Atomics. A plain CAS has all mask bits set; FAA adds `desired`. Fence: `desired` is the victim.
  uint64_t expect = 0;
  uint64_t desired = 0;
  uint64_t compare_mask = ~uint64_t{0};
  uint64_t swap_mask = ~uint64_t{0};
  uint64_t hint = 0;

  uint64_t old = 0;  // answer of an atomic: the whole word as it was before
};

constexpr bool IsAtomic(VerbKind kind) {
  return kind == VerbKind::kCas || kind == VerbKind::kMaskedCas || kind == VerbKind::kFaa;
}
// READs and atomics are answered with data; devices bound how many may be outstanding.
constexpr bool IsAnswered(VerbKind kind) { return kind == VerbKind::kRead || IsAtomic(kind); }
constexpr bool IsControl(VerbKind kind) { return kind == VerbKind::kCall || kind == VerbKind::kFence; }
constexpr bool Mutates(VerbKind kind) { return kind != VerbKind::kRead && kind != VerbKind::kFence; }

// Whether the atomic `verb` succeeds on a word that holds `old`, and what the word becomes then.
constexpr bool Succeeds(const Verb& verb, uint64_t old) {
  return verb.kind == VerbKind::kFaa || ((old ^ verb.expect) & verb.compare_mask) == 0;
}
constexpr uint64_t NewWord(const Verb& verb, uint64_t old) {
  if (verb.kind == VerbKind::kFaa) return old + verb.desired;
  return (old & ~verb.swap_mask) | (verb.desired & verb.swap_mask);
}

// The order that one trip posted InOrder guarantees between two of its verbs: true if `later` cannot
// overtake `earlier`. What follows a READ or an atomic may overtake it, unless it is a READ itself.
// `ordered_reads` is false on fabrics that may sample two READs of a trip in any order.
constexpr bool MustPrecede(const Verb& earlier, const Verb& later, bool ordered_reads) {
  if (later.fenced || IsControl(earlier.kind) || IsControl(later.kind)) return true;
  if (earlier.kind == VerbKind::kWrite) return true;
  if (later.kind != VerbKind::kRead) return false;
  return earlier.kind != VerbKind::kRead || ordered_reads;
}

// ---- typed verbs -------------------------------------------------------------------------------------
// Each has Lower(), called once it stands at its final address, and Answer().

class ReadIntoVerb {
 public:
  using AnswerType = Done;
  ReadIntoVerb(FarAddr at, std::span<std::byte> into) {
    verb.at = at;
    verb.size = into.size();
    verb.into = into.data();
  }
  const Verb& Lower() { return verb; }
  Done Answer(const Verb&) const { return {}; }
  Verb verb;
};

template <class T>
class ReadVerb {
  static_assert(std::is_trivially_copyable_v<T>, "far memory holds plain bytes");

 public:
  using AnswerType = T;
  explicit ReadVerb(FarAddr at) {
    verb.at = at;
    verb.size = sizeof(T);
  }
  const Verb& Lower() {
    verb.into = reinterpret_cast<std::byte*>(&value_);
    return verb;
  }
  T Answer(const Verb&) const { return value_; }
  Verb verb;

 private:
  T value_{};
};

class WriteVerb {
 public:
  using AnswerType = Done;
  WriteVerb(FarAddr at, std::span<const std::byte> from) {
    verb.kind = VerbKind::kWrite;
    verb.at = at;
    verb.size = from.size();
    verb.from = from.data();
  }
  const Verb& Lower() { return verb; }
  Done Answer(const Verb&) const { return {}; }
  Verb verb;
};

// CAS, masked CAS and FAA; the answer is the whole word as it was before.
class AtomicVerb {
 public:
  using AnswerType = uint64_t;
  AtomicVerb(VerbKind kind, FarAddr at, uint64_t expect, uint64_t desired) {
    verb.kind = kind;
    verb.at = at;
    verb.size = 8;
    verb.expect = expect;
    verb.hint = expect;
    verb.desired = desired;
  }
  const Verb& Lower() { return verb; }
  uint64_t Answer(const Verb& done) const { return done.old; }
  Verb verb;
};

class CallVerb {
 public:
  using AnswerType = std::string;
  CallVerb(NodeId node, CallId call, std::string_view request) {
    verb.kind = VerbKind::kCall;
    verb.call = call;
    verb.at = FarAddr(node, 0);
    verb.size = request.size();
    verb.from = reinterpret_cast<const std::byte*>(request.data());
  }
  const Verb& Lower() {
    verb.reply = &reply_;
    return verb;
  }
  std::string Answer(const Verb&) { return std::move(reply_); }
  Verb verb;

 private:
  std::string reply_;
};

class FenceVerb {
 public:
  using AnswerType = Done;
  FenceVerb(NodeId node, ClientId victim) {
    verb.kind = VerbKind::kFence;
    verb.purpose = Purpose::kMaintenance;
    verb.at = FarAddr(node, 0);
    verb.desired = Number(victim);
  }
  const Verb& Lower() { return verb; }
  Done Answer(const Verb&) const { return {}; }
  Verb verb;
};

// ---- how engines spell them -------------------------------------------------------------------------

inline ReadIntoVerb Read(FarAddr at, std::span<std::byte> into) { return ReadIntoVerb(at, into); }
template <class T>
ReadVerb<T> Read(FarAddr at) {
  return ReadVerb<T>(at);
}
// `from` must stay alive and unchanged until the trip has completed.
inline WriteVerb Write(FarAddr at, std::span<const std::byte> from) { return WriteVerb(at, from); }
template <class T>
WriteVerb WriteObject(FarAddr at, const T& object) {
  static_assert(std::is_trivially_copyable_v<T>, "far memory holds plain bytes");
  return WriteVerb(at, std::as_bytes(std::span(&object, 1)));
}
inline AtomicVerb Cas(FarAddr at, uint64_t expect, uint64_t desired) {
  return AtomicVerb(VerbKind::kCas, at, expect, desired);
}
inline AtomicVerb Faa(FarAddr at, uint64_t delta) { return AtomicVerb(VerbKind::kFaa, at, 0, delta); }
// Compares and swaps only the masked bits. `hint` is the caller's guess of the whole word, for backends
// without masked atomics.
inline AtomicVerb MaskedCas(FarAddr at, uint64_t hint, uint64_t expect, uint64_t compare_mask,
                            uint64_t desired, uint64_t swap_mask) {
  AtomicVerb masked(VerbKind::kMaskedCas, at, expect, desired);
  masked.verb.hint = hint;
  masked.verb.compare_mask = compare_mask;
  masked.verb.swap_mask = swap_mask;
  return masked;
}

// Takes effect after everything that precedes it in its trip, where the order alone does not promise that.
template <class V>
V Fenced(V typed) {
  typed.verb.fenced = true;
  return typed;
}
template <class V>
V ForBlock(V typed) {
  typed.verb.purpose = Purpose::kBlock;
  return typed;
}
template <class V>
V ForMaintenance(V typed) {
  typed.verb.purpose = Purpose::kMaintenance;
  return typed;
}
// A WRITE to bytes that no other client can reach yet.
inline WriteVerb Unreachable(WriteVerb typed) {
  typed.verb.unreachable = true;
  return typed;
}

}  // namespace farside::fabric
