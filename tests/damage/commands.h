// The commands on a damaged pool: what a user can do to a table, each with a bound for its time and its
// verbs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fabric/op.h"
#include "fabric/sim/sim.h"
#include "farside/task.h"
#include "index/index.h"
#include "tests/damage/damaged_pool.h"
#include "tests/support/table_tasks.h"

namespace farside::damage {

class CommandClient : private index::TableTasks {
 public:
  CommandClient(
      fabric::sim::SimFabric& world, const std::shared_ptr<index::Engine>& engine, Findings& findings,
      Damaged damaged = Damaged::kAnyBytes, std::function<void()> between_steps = [] {})
      : TableTasks(std::move(*world.Connect())),
        world_(world),
        engine_(engine),
        findings_(findings),
        damaged_(damaged),
        between_steps_(std::move(between_steps)) {}

  // Joins the pool, and opens the table or makes it. False: that is not possible.
  bool Open();
  void LeavePool();

  // Each command counts as one, and says what is wrong with its answer. `content` grows by what it puts.
  void Fill(Content& content);
  void Look(const Content& content);
  void Change(Content& content);
  void Check();
  void DropTable();

 private:
  // Steps the world until the task has ended, or for as long as a command may take.
  template <class T>
  std::optional<T> Run(std::string_view what, Task<T> task) {
    ++findings_.commands;
    const Nanos began = world_.Now();
    const uint64_t verbs = world_.verbs_posted();
    task.Start();
    while (!task.done() && world_.Now() - began <= kMostTime && world_.verbs_posted() - verbs <= kMostVerbs &&
           world_.Step()) {
      between_steps_();
    }
    findings_.longest = std::max(findings_.longest, world_.Now() - began);
    if (!task.done()) {
      Wrong(what, "did not end");
      return std::nullopt;
    }
    Result<T> result = task.TakeResult();
    if (result.ok()) return std::move(*result);
    ++findings_.refused;
    findings_.codes.insert(result.error().code());
    findings_.last_error = result.error().ToString();
    return std::nullopt;
  }
  void Wrong(std::string_view what, std::string_view why);
  void CheckValue(const Content& content, std::string_view what, const Record& record);

  Task<Done> PutAll(Content& content);
  Task<Done> PutIfThereIsRoom(std::string key, std::string value);
  Task<std::optional<std::string>> Get(std::string key);
  Task<std::vector<Record>> GetTogether(std::vector<std::string> keys);
  Task<std::vector<Record>> List();
  Task<Record> Last();
  Task<Done> Fsck();

  // A record without one may be damaged and nothing tells.
  bool HasChecksum(const Record& record) const;
  std::string Fit(std::string text) const;

  fabric::sim::SimFabric& world_;
  const std::shared_ptr<index::Engine> engine_;
  Findings& findings_;
  const Damaged damaged_;
  const std::function<void()> between_steps_;  // of the world
};

}  // namespace farside::damage
