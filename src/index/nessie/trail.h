// Where a key may stand, and what was read there.
//
// A key has two candidates. Of each, the slot by the newest version of the table counts; if that is unsplit,
// its parent does, and so on: the slots of a candidate are a trail, from its home down to the first slot that
// is in use, the effective one. A slot that is in use stays so for ever (nessie/8): so a trail that was read
// down to its effective slot can only become shorter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/nessie/layout.h"
#include "index/nessie/partition.h"

namespace farside::index::nessie {

// To READ a word into.
inline std::span<std::byte> BytesOf(Word& word) { return std::as_writable_bytes(std::span(&word, 1)); }

class Trail {
 public:
  struct Step {
    uint64_t slot;
    Word word;
  };

  // Nothing of it is read yet.
  void Begin(const Shape& shape, uint64_t home) {
    count_ = read_ = 0;
    uint64_t slot = home;
    while (true) {
      steps_[count_++].slot = slot;
      if (!shape.HasParent(slot)) break;
      slot = Shape::ParentOf(slot);
    }
  }

  size_t count() const { return count_; }
  // Steps that were read; of a settled trail, the last one is the effective one, or was.
  size_t read() const { return read_; }
  void set_read(size_t read) { read_ = read; }
  Step& step(size_t i) { return steps_[i]; }
  const Step& step(size_t i) const { return steps_[i]; }

  // Which of the steps that were read is in use; read() if none is.
  size_t effective() const {
    for (size_t i = 0; i < read_; ++i) {
      if (steps_[i].word.is_effective()) return i;
    }
    return read_;
  }
  bool is_settled() const { return effective() < read_; }
  const Step& effective_step() const { return steps_[effective()]; }

  // Which step a slot is; none if the trail does not lead through it.
  std::optional<size_t> Find(uint64_t slot) const {
    for (size_t i = 0; i < count_; ++i) {
      if (steps_[i].slot == slot) return i;
    }
    return std::nullopt;
  }

  // Whether both have the same effective slot, with the same word. Unsplit and splitting are the same for a
  // reader.
  friend bool SameWords(const Trail& a, const Trail& b) {
    const size_t at = a.effective();
    return at == b.effective() && at < a.read() && at < b.read() && a.steps_[at].word == b.steps_[at].word;
  }

 private:
  std::array<Step, kMostVersion> steps_;
  size_t count_ = 0;
  size_t read_ = 0;
};

// Both trails of a key.
struct Look {
  std::array<Trail, kCandidates> trails;

  Trail& of(Candidate candidate) { return trails[static_cast<size_t>(candidate)]; }
  const Trail& of(Candidate candidate) const { return trails[static_cast<size_t>(candidate)]; }
  Word word(Candidate candidate) const { return of(candidate).effective_step().word; }
  bool is_settled() const { return trails[0].is_settled() && trails[1].is_settled(); }
};
inline bool SameWords(const Look& a, const Look& b) {
  return SameWords(a.trails[0], b.trails[0]) && SameWords(a.trails[1], b.trails[1]);
}

// Begins both trails of a key in the newest version that this client knows of, also if that is only
// announced: another client may know that it counts.
void BeginLook(const Partition& part, const KeyHash& hash, Look& look);

// READs both trails to their effective slots, anew: one trip, one more if the home of one is unsplit and this
// was not expected.
Task<Done> ReadLook(fabric::Op& op, Partition& part, const KeyHash& hash, Look& look);
// READs a look once more, the same slots as before: one trip.
Task<Done> ReadLookAgain(fabric::Op& op, const Partition& part, const Look& look, Look& again);
// Goes on with trails of which some steps were read, or none: those of one key or two, by the same trips.
Task<Done> FinishLooks(fabric::Op& op, Partition& part, Look* first, Look* second = nullptr);

// A change shortens such trails first.
inline bool IsTooLong(const Look& look) {
  return look.trails[0].read() > kMostTrailOfChange || look.trails[1].read() > kMostTrailOfChange;
}

}  // namespace farside::index::nessie
