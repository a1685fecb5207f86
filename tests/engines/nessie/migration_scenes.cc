// Migrations, what they meet, and what dead migrators leave.
#include "tests/engines/nessie/scenes.h"

namespace farside::index::nessie {
namespace {

using Clients = Scene::Clients;

void InSecondary(Play& play, const Clients&) { StandsInSecondary(play); }
void InPrimary(Play& play, const Clients&) { StandsInPrimary(play); }

// K is live in both slots; the source is the secondary one.
void TwoCopies(Play& play, const Clients&) {
  StandsInSecondary(play);
  DiesWhen(play, Put(TakesSecondary(), "dying"),
           [&] { return play.Has(0, Kind::kLive, K()) && play.Has(1, Kind::kLive, K()); });
}
// The source is the primary one.
void TwoCopiesFromPrimary(Play& play, const Clients&) {
  StandsInPrimary(play);
  DiesWhen(play, Put(TakesPrimary(), "dying"),
           [&] { return play.Has(0, Kind::kLive, K()) && play.Has(1, Kind::kLive, K()); });
}
void ClaimIsLeft(Play& play, const Clients&) {
  StandsInSecondary(play);
  DiesWhen(play, Put(TakesSecondary(), "dying"), [&] { return play.Has(0, Kind::kClaim, K()); });
}

// Moves K to its other slot and back.
std::vector<Request> ToPrimaryAndBack() {
  return {Put(TakesSecondary(), "1"), Delete(TakesSecondary()), Put(TakesPrimary(), "2"),
          Delete(TakesPrimary())};
}

}  // namespace

std::vector<Scene> MigrationScenes() {
  std::vector<Scene> scenes;
  for (const bool to_primary : {true, false}) {
    const std::string displaces = to_primary ? TakesSecondary() : TakesPrimary();
    const auto set = to_primary ? InSecondary : InPrimary;
    const std::string where = to_primary ? "to the primary slot" : "to the secondary slot";
    scenes.push_back(
        {.name = "a migration " + where + " meets an update",
         .set = set,
         .scripts = {{Put(displaces, "1")}, {Update(K(), "2"), Get(K())}, {Get(K()), Get(K())}}});
    scenes.push_back({.name = "a migration " + where + " meets a delete",
                      .set = set,
                      .scripts = {{Put(displaces, "1")}, {Delete(K()), Get(K())}, {Get(K()), Get(K())}}});
    scenes.push_back(
        {.name = "a migration " + where + " meets a delete and an insert",
         .set = set,
         .scripts = {
             {Put(displaces, "1")}, {Delete(K()), Insert(K(), "2"), Get(K())}, {Get(K()), Get(K())}}});
  }
  scenes.push_back({.name = "a key goes and comes back beside a reader",
                    .set = InSecondary,
                    .scripts = {ToPrimaryAndBack(), {Get(K()), Get(K()), Delete("absent")}}});
  scenes.push_back({.name = "a key goes and comes back beside a writer",
                    .set = InSecondary,
                    .scripts = {ToPrimaryAndBack(), {Update(K(), "3"), Get(K())}}});
  scenes.push_back({.name = "two put the key that needs room",
                    .set = InSecondary,
                    .scripts = {{Put(TakesSecondary(), "1")}, {Put(TakesSecondary(), "2")}, {Get(K())}}});
  scenes.push_back(
      {.name = "a claim is left",
       .set = ClaimIsLeft,
       .scripts = {{Update(K(), "1"), Get(K())}, {Put(TakesPrimary(), "2"), Get(K())}, {Get(K())}}});
  scenes.push_back({.name = "two copies are left",
                    .set = TwoCopies,
                    .scripts = {{Update(K(), "1"), Get(K())}, {Delete(K()), Get(K())}, {Get(K())}},
                    .after_a_death = true});
  scenes.push_back({.name = "two copies are left, the primary one is the source",
                    .set = TwoCopiesFromPrimary,
                    .scripts = {{Update(K(), "1"), Get(K())}, {Delete(K()), Get(K())}, {Get(K())}},
                    .after_a_death = true});
  scenes.push_back(
      {.name = "two copies are left, and their slots are needed",
       .table = {{"grow", "no"}},
       .set = TwoCopies,
       .scripts = {{Update(K(), "1"), Get(K())}, {Put(TakesPrimary(), "2"), Get(K())}, {Get(K())}}});
  // An update has seen the claim and stops; meanwhile the key is deleted and inserted where the claim was.
  scenes.push_back({.name = "a claim is left, and the key is made anew",
                    .set =
                        [](Play& play, const Clients&) {
                          StandsInPrimary(play);
                          DiesWhen(play, Put(TakesPrimary(), "dying"),
                                   [&] { return play.Has(1, Kind::kClaim, K()); });
                        },
                    .scripts = {{Update(K(), "1"), Get(K())},
                                {Delete(K()), Put(TakesPrimary(), "2"), Insert(K(), "3"), Get(K())}},
                    .after_a_death = true});
  // An update has seen both copies and stops; meanwhile the key is deleted and inserted where the source was.
  scenes.push_back({.name = "two copies are left, and the key is made anew",
                    .set = TwoCopies,
                    .scripts = {{Update(K(), "1"), Get(K())},
                                {Delete(K()), Put(TakesPrimary(), "2"), Insert(K(), "3"), Get(K())}},
                    .after_a_death = true});
  return scenes;
}

}  // namespace farside::index::nessie
