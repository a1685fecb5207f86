#include "tests/engines/nessie/scenes.h"

#include <chrono>

namespace farside::index::nessie {

using std::chrono::milliseconds;

namespace {

// Of a client that does not wait for another one.
constexpr uint64_t kMostSteps = 100;

}  // namespace

std::string Scene::ByChance(uint64_t seeds) const {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Play play(table, {.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
    Clients clients;
    for (size_t i = 0; i < scripts.size(); ++i) clients.push_back(&play.Enter());
    set(play, clients);
    for (size_t i = 0; i < scripts.size(); ++i) play.BeginAll(*clients[i], scripts[i]);
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("{}: seed {}: {}", name, seed, problem);
  }
  return "";
}

std::string Scene::StopsAfter(size_t stopping, uint64_t steps, bool& more) const {
  Play play(table);
  Clients clients;
  for (size_t i = 0; i < scripts.size(); ++i) clients.push_back(&play.Enter());
  set(play, clients);
  play.BeginAll(*clients[stopping], scripts[stopping], steps);
  more = !play.over();
  play.Stop(*clients[stopping], milliseconds(8));
  for (size_t i = 0; i < scripts.size(); ++i) {
    if (i != stopping) play.DoAll(*clients[i], scripts[i]);
  }
  // What it leaves is seen before it goes on.
  Member& watcher = play.Enter();
  for (const Request& request : scripts[stopping]) play.Do(watcher, Get(request.key));
  return play.End();
}

std::string Scene::OneStops() const {
  for (size_t client = 0; client < scripts.size(); ++client) {
    bool more = true;
    for (uint64_t steps = 0; more && steps < kMostSteps; ++steps) {
      const std::string problem = StopsAfter(client, steps, more);
      if (!problem.empty())
        return fmt::format("{}: client {} stops after {} steps: {}", name, client, steps, problem);
    }
  }
  return "";
}

// ---- states ----------------------------------------------------------------------------------------------

namespace {

void Check(Play& play, bool holds, const char* what) {
  if (!holds) play.world.Complain(fmt::format("the scene does not begin: {}", what));
}

void PutAll(Play& play, const std::vector<Request>& requests) {
  Member& setter = play.Enter();
  play.DoAll(setter, requests);
}

}  // namespace

void StandsInSecondary(Play& play) {
  PutAll(play,
         {Put(TakesPrimary(), "0"), Put(K(), "0"), Delete(TakesPrimary()), Put(At2(), "0"), Put(At3(), "0")});
  Check(play, play.Has(1, Kind::kLive, K()) && play.At(0).is(Kind::kEmpty), "K is not in its secondary slot");
}

void StandsInPrimary(Play& play) {
  PutAll(play, {Put(K(), "0"), Put(At2(), "0"), Put(At3(), "0")});
  Check(play, play.Has(0, Kind::kLive, K()) && play.At(1).is(Kind::kEmpty), "K is not in its primary slot");
}

void DiesWhen(Play& play, const Request& request, const std::function<bool()>& there) {
  Member& victim = play.Enter();
  play.Do(victim, Get(request.key));  // it knows the table
  Check(play, play.BeginUntil(victim, request, there), "the client does not come to where it should die");
  play.Kill(victim);
  play.LetPass(milliseconds(25));  // others find that it is dead
}

// ---- pending entries -------------------------------------------------------------------------------------

std::vector<Scene> EntryScenes() {
  using Clients = Scene::Clients;
  const auto empty = [](Play&, const Clients&) {};
  const auto primary = [](Play& play, const Clients&) { StandsInPrimary(play); };
  const auto secondary = [](Play& play, const Clients&) { StandsInSecondary(play); };
  std::vector<Scene> scenes;
  scenes.push_back({.name = "two insert a key",
                    .set = empty,
                    .scripts = {{Insert(K(), "1")}, {Insert(K(), "2")}, {Get(K()), Get(K())}}});
  scenes.push_back(
      {.name = "two insert a key whose primary slot comes free",
       .set = [](Play& play, const Clients&) { PutAll(play, {Put(TakesPrimary(), "0")}); },
       .scripts = {{Insert(K(), "1")}, {Put(K(), "2"), Get(K())}, {Delete(TakesPrimary()), Get(K())}}});
  scenes.push_back({.name = "two update a key",
                    .set = primary,
                    .scripts = {{Update(K(), "1")}, {Put(K(), "2")}, {Get(K()), Get(K())}}});
  scenes.push_back(
      {.name = "a blind insert meets changes in the secondary slot",
       .set = secondary,
       .scripts = {{Insert(K(), "1")}, {Delete(K()), Insert(K(), "2"), Get(K())}, {Get(K()), Get(K())}}});
  scenes.push_back({.name = "a blind insert meets an update in the secondary slot",
                    .set = secondary,
                    .scripts = {{Insert(K(), "1")}, {Update(K(), "2"), Get(K())}, {Get(K()), Get(K())}}});
  scenes.push_back({.name = "a dead writer has left an entry over a value",
                    .set =
                        [](Play& play, const Clients&) {
                          StandsInPrimary(play);
                          DiesWhen(play, Put(K(), "dying"), [&] { return play.Has(0, Kind::kPending, K()); });
                        },
                    .scripts = {{Put(K(), "1"), Get(K())}, {Get(K()), Update(K(), "2")}},
                    .after_a_death = true});
  scenes.push_back(
      {.name = "a dead writer has left a fresh entry beside the key",
       .set =
           [](Play& play, const Clients&) {
             StandsInSecondary(play);
             DiesWhen(play, Insert(K(), "dying"), [&] { return play.Has(0, Kind::kPending, K()); });
           },
       .scripts = {{Update(K(), "1"), Get(K())}, {Get(K()), Put(TakesPrimary(), "2"), Get(K())}}});
  const std::string twin = KeyWithTheTagOf(K());
  scenes.push_back({.name = "keys with the same tag",
                    .set = [](Play& play, const Clients&) { PutAll(play, {Put(K(), "0")}); },
                    .scripts = {{Get(twin), Insert(twin, "1"), Delete(twin)}, {Get(twin), Get(K())}}});
  return scenes;
}

}  // namespace farside::index::nessie
