#include "tests/engines/chime/hang_scenarios.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/wrapped_fabric.h"

namespace farside::index::chime {

namespace {

using std::chrono::milliseconds;

constexpr fabric::NodeId kHanging{1};

// Locks are still taken, and released: what fails is what is done under them.
class HangingClient final : public WrappedClient {
 public:
  HangingClient(std::unique_ptr<fabric::Client> inner, const std::optional<Hang>& hang)
      : WrappedClient(std::move(inner)), hang_(hang) {}

  using WrappedClient::Start;
  bool Start(fabric::Trip& trip) override {
    const fabric::Verb& first = trip.verbs[0];
    const bool writes =
        first.kind == fabric::VerbKind::kWrite && first.purpose != fabric::Purpose::kMaintenance;
    if (!hang_.has_value() || !writes || first.at.node != kHanging) return inner().Start(trip);
    if (*hang_ == Hang::kAnswerLost) inner().Detach(trip.order, trip.verbs);
    trip.Fail(*hang_ == Hang::kRefused ? Error(ErrorCode::kUnavailable, "the node hangs")
                                       : fabric::LostCompletion(trip.verbs, "the node hangs"));
    return true;
  }

 private:
  const std::optional<Hang>& hang_;
};

class HangingMember : public TableTasks {
 public:
  HangingMember(World& world, const std::optional<Hang>& hang, OptionMap options)
      : TableTasks(std::make_unique<HangingClient>(std::move(*world.fabric.Connect()), hang)), world_(world) {
    const FindEngine find = [](std::string_view, const OptionMap& wanted) { return MakeChimeEngine(wanted); };
    Try(Join(find, milliseconds(10), "chime", std::move(options)));
  }
  template <class T>
  Result<T> Try(Task<T> task) {
    task.Start();
    world_.Drive([&] { return task.done(); });
    return task.TakeResult();
  }

 private:
  World& world_;
};

}  // namespace

std::string InsertsFail(Hang hang, size_t span, bool dropped) {
  World world({.nodes = 2});
  const OptionMap options = {{"keys", "bytes"}, {"span", std::to_string(span)}, {"fanout", "4"}};
  std::optional<Hang> hangs;
  HangingMember owner(world, hangs, options);
  const auto key = [](int i) { return fmt::format("a key with a long prefix {:04}", i); };
  for (int i = 0; i < 10; ++i) {
    if (!owner.Try(owner.Put(key(100 * i), "original")).ok()) return "a put has failed";
  }
  hangs = hang;
  int failed = 0;
  for (int i = 0; i < 10; ++i) failed += owner.Try(owner.Put(key(100 * i + 1), "new")).ok() ? 0 : 1;
  hangs.reset();
  if (failed == 0) return "no insert has failed";
  for (int i = 0; i < 10; ++i) {
    const Result<PutOutcome> put = owner.Try(owner.Put(key(100 * i + 2), "later"));
    if (!put.ok()) return put.error().ToString();
  }
  if (dropped) {
    const Result<Done> gone = owner.Try(owner.Drop());
    if (!gone.ok()) return gone.error().ToString();
  }
  const Result<Done> left = owner.Try(owner.Leave());
  if (!left.ok()) return left.error().ToString();
  Member auditor(world, options);
  auditor.Audit();
  return world.problem;
}

}  // namespace farside::index::chime
