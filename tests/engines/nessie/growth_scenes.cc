// Growth: slots that are split, by clients that know different things.
#include "tests/engines/nessie/scenes.h"

namespace farside::index::nessie {
namespace {

using Clients = Scene::Clients;

// Keys of slot 0, whose home is slot 4 when the table has grown, and whose other slot is not split.
std::string Moves() { return KeyAt({4, 1, 2}); }
std::string MovesToo() { return KeyAt({4, 2, 2}); }
// The same in its secondary slot.
std::string MovesInSecondary() { return KeyAt({1, 4, 2}); }
// It stays in slot 0.
std::string Stays() { return KeyAt({0, 2, 2}); }
// Both of its slots are split.
std::string MovesBoth() { return KeyAt({4, 5, 2}); }

// `clients[0]` knows the new version, the others know only that it was announced.
void GrowFor(Play& play, const Clients& clients) {
  play.Announce(clients);
  play.Activate();
  play.Learn(*clients[0]);
}
// All know.
void GrowForAll(Play& play, const Clients& clients) {
  GrowFor(play, clients);
  for (Member* client : clients) play.Learn(*client);
}

std::function<void(Play&, const Clients&)> With(const std::vector<Request>& requests, bool all = false) {
  return [=](Play& play, const Clients& clients) {
    Member& setter = play.Enter();
    play.DoAll(setter, requests);
    all ? GrowForAll(play, clients) : GrowFor(play, clients);
  };
}

}  // namespace

std::vector<Scene> GrowthScenes() {
  std::vector<Scene> scenes;
  // The first client has to split slot 4.
  for (const bool all : {false, true}) {
    const std::string known = all ? ", which all know of" : ", which one knows of";
    const auto add = [&](const std::string& what, const std::vector<Request>& before, const Request& splits,
                         const std::vector<Request>& others) {
      scenes.push_back({.name = "a split" + known + ", meets " + what,
                        .table = {{"grow", "yes"}},
                        .set = With(before, all),
                        .scripts = {{splits, Get(Moves())}, others, {Get(Moves()), Get(Moves())}}});
    };
    add("an update of what moves", {Put(Moves(), "0")}, Put(MovesToo(), "1"),
        {Update(Moves(), "2"), Get(Moves())});
    add("a delete of what moves", {Put(Moves(), "0")}, Put(MovesToo(), "1"), {Delete(Moves()), Get(Moves())});
    add("a delete and an insert of what moves", {Put(Moves(), "0")}, Put(MovesToo(), "1"),
        {Delete(Moves()), Insert(Moves(), "2"), Get(Moves())});
    add("an insert of what moves", {Put(At2(), "0")}, Put(MovesToo(), "1"),
        {Insert(Moves(), "2"), Get(Moves())});
    add("an insert of the same key", {Put(At2(), "0")}, Insert(Moves(), "1"),
        {Insert(Moves(), "2"), Get(Moves())});
    add("an insert of what stays", {Put(Moves(), "0")}, Put(MovesToo(), "1"),
        {Put(Stays(), "2"), Get(Stays())});
    add("a key with two unsplit slots", {Put(MovesBoth(), "0")}, Put(MovesToo(), "1"),
        {Update(MovesBoth(), "2"), Get(MovesBoth()), Delete(MovesBoth())});
    add("a migration of what moves", {Put(Moves(), "0"), Put(KeyAt({2, 3}), "0"), Put(KeyAt({3, 2}), "0")},
        Put(MovesToo(), "1"), {Put(Stays(), "2"), Get(Moves()), Update(Moves(), "3")});
    add("a migration into what is split",
        {Put(Stays(), "0"), Put(Moves(), "0"), Delete(Stays()), Put(KeyAt({2, 3}), "0"),
         Put(KeyAt({3, 2}), "0")},
        Put(MovesToo(), "1"), {Put(KeyAt({1, 3, 2}), "2"), Get(Moves()), Update(Moves(), "3")});
    add("an update in the other slot", {Put(Stays(), "0"), Put(Moves(), "0"), Delete(Stays())},
        Put(MovesToo(), "1"), {Update(Moves(), "2"), Get(Moves()), Delete(Moves()), Insert(Moves(), "3")});
    add("an update by the secondary slot", {Put(MovesInSecondary(), "0")}, Put(MovesToo(), "1"),
        {Update(MovesInSecondary(), "2"), Get(MovesInSecondary()), Delete(MovesInSecondary())});
  }
  // Slot 0 has the source, slot 1 the copy.
  const auto two_copies = [](Play& play, const Clients& clients) {
    Member& setter = play.Enter();
    play.DoAll(setter, {Put(Moves(), "0"), Put(KeyAt({2, 3, 2}), "0"), Put(KeyAt({3, 2, 2}), "0")});
    DiesWhen(play, Put(Stays(), "dying"),
             [&] { return play.Has(0, Kind::kLive, Moves()) && play.Has(1, Kind::kLive, Moves()); });
    GrowForAll(play, clients);
  };
  scenes.push_back({.name = "a split meets two copies that are left",
                    .table = {{"grow", "yes"}},
                    .set = two_copies,
                    .scripts = {{Put(KeyAt({4, 6, 2}), "1"), Get(Moves())}, {Get(Moves())}},
                    .after_a_death = true});
  scenes.push_back(
      {.name = "a split meets two copies that are left, and an update",
       .table = {{"grow", "yes"}},
       .set = two_copies,
       .scripts = {{Put(KeyAt({4, 6, 2}), "1"), Get(Moves())}, {Update(Moves(), "2"), Get(Moves())}}});
  return scenes;
}

}  // namespace farside::index::nessie
