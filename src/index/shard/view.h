// What one operation has read of the places where its key may stand.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "index/shard/bucket.h"
#include "index/shard/layout.h"

namespace farside::index::shard {

// Everywhere a key may stand, as read for a change.
struct View {
  Bucket bucket;
  Overflow first;
  Overflow second;
  bool has_second = false;    // the two choices are different lines
  bool unclassified = false;  // the choices were read together with the bucket, and may not decide
  // Of the units that the choices will move to, if a resize is announced and they were read: version 0 until
  // then.
  Line first_new;
  Line second_new;
  std::optional<uint64_t> busy;  // a unit whose lock another client holds

  Overflow& choice(Candidate candidate) { return candidate == Candidate::kFirstChoice ? first : second; }
  const Overflow& choice(Candidate candidate) const {
    return candidate == Candidate::kFirstChoice ? first : second;
  }
  Line& choice_new(Candidate candidate) {
    return candidate == Candidate::kFirstChoice ? first_new : second_new;
  }
  const Line& choice_new(Candidate candidate) const {
    return candidate == Candidate::kFirstChoice ? first_new : second_new;
  }
};
inline constexpr Candidate kChoices[] = {Candidate::kFirstChoice, Candidate::kSecondChoice};

// A key that was found.
struct Found {
  Slot slot;
  std::string_view value;  // inside of the buffer with its block
};

}  // namespace farside::index::shard
