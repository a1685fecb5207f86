// Planted bugs. A checker that never saw a bug proves little, so engines carry a few that it must find:
//
//   inline constexpr MutantName kSkipChecksum{"reference/skip-checksum"};
//   ...
//   if (!Mutant(kSkipChecksum) && !ChecksumMatches(block)) co_return Retry();
//
// This is the one exception to "no hooks inside engines": faults of the world (lost verbs, dead clients)
// are injected at the fabric, but a mistake of the engine itself has no other place to be.
//
// In production a mutant is constexpr false, and the compiler removes it. The engine libraries are compiled a
// second time with FARSIDE_MUTANTS=1 for the *_mutants_test.cc; there one mutant at a time can be switched
// on.
//
// The two forms live in different inline namespaces: were objects of both kinds linked into one program, no
// inline function defined here would stand for the other. The same must hold for the engines, so call
// Mutant() in .cc files only: an inline function or template that calls it would have two bodies.
#pragma once

#include <cassert>
#include <string_view>

namespace farside {

// "engine/what-it-does-wrong". Two names are the same mutant if their texts are equal.
struct MutantName {
  const char* text;
};

#if defined(FARSIDE_MUTANTS) && FARSIDE_MUTANTS

inline namespace mutants_switchable {

// Switches one mutant on for the thread that runs the test, until the end of the scope. The simulator runs
// all of its clients on that thread.
class ScopedMutant {
 public:
  explicit ScopedMutant(MutantName name) {
    assert(active_ == nullptr && "one mutant at a time: two planted bugs can hide each other");
    active_ = name.text;
  }
  ~ScopedMutant() { active_ = nullptr; }
  ScopedMutant(const ScopedMutant&) = delete;
  ScopedMutant& operator=(const ScopedMutant&) = delete;

 private:
  friend bool Mutant(MutantName name);

  static inline constinit thread_local const char* active_ = nullptr;  // a text that outlives the scope
};

inline bool Mutant(MutantName name) {
  return ScopedMutant::active_ != nullptr && std::string_view(ScopedMutant::active_) == name.text;
}

}  // namespace mutants_switchable

#else

inline namespace mutants_off {

constexpr bool Mutant(MutantName) { return false; }

}  // namespace mutants_off

#endif

}  // namespace farside
