// What a few clients do at the same time in a table that was brought into a certain state, and the ways to
// play it: by chance, and with clients that stop at every step. A play returns what went wrong, or nothing.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/engines/nessie/world.h"

namespace farside::index::nessie {

struct Scene {
  using Clients = std::vector<Member*>;

  std::string name;
  OptionMap table = {};
  // Brings the table into the state in which the scene begins. The clients of the scripts are there already.
  std::function<void(Play& play, const Clients& clients)> set;
  std::vector<std::vector<Request>> scripts = {};  // one for each client

  bool after_a_death = false;  // takes long to begin

  // All clients at the same time, with delays by the seed.
  std::string ByChance(uint64_t seeds) const;
  // Each client in turn stops at every step of its script, and the others go on.
  std::string OneStops() const;

 private:
  // `more`: it had not ended by then.
  std::string StopsAfter(size_t stopping, uint64_t steps, bool& more) const;
};

inline void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }
inline std::string NameOfScene(const testing::TestParamInfo<Scene>& scene) {
  return NameOf(scene.param.name);
}

// ---- the keys of most scenes, in a table of four slots

inline std::string K() { return KeyAt({0, 1}); }
// Puts of them move K to its primary slot, or to its secondary one, if the other slots are taken.
inline std::string TakesSecondary() { return KeyAt({1, 3}); }
inline std::string TakesPrimary() { return KeyAt({0, 2}); }
inline std::string At2() { return KeyAt({2, 3}); }
inline std::string At3() { return KeyAt({3, 2}); }

// Slot 1 has K, slot 0 is empty, the others are taken.
void StandsInSecondary(Play& play);
// Slot 0 has K, slot 1 is empty, the others are taken.
void StandsInPrimary(Play& play);
// A client does something and dies when `there` holds; then others find that it is dead.
void DiesWhen(Play& play, const Request& request, const std::function<bool()>& there);

// Pending entries: two writers, or one that is dead.
std::vector<Scene> EntryScenes();
// Migrations, what they meet, and what dead migrators leave.
std::vector<Scene> MigrationScenes();
// Growth: slots that are split, by clients that know different things.
std::vector<Scene> GrowthScenes();

}  // namespace farside::index::nessie
