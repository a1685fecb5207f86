// The set-up of a World: one program alone, whose trips take effect at once.
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "check/exhaustive/world.h"
#include "farside/task.h"

namespace farside::check::exhaustive {

using fabric::ClientId;
using fabric::Verb;
using fabric::VerbKind;

class World::SetUpWire final : public Wire {
 public:
  explicit SetUpWire(World& world) : world_(world) {}

  bool Start(uint32_t connection, fabric::Trip& trip) override {
    const uint64_t region_bytes = world_.scenario_.region_bytes;
    if (std::optional<Error> error = fabric::CheckBounds(trip.verbs, {&region_bytes, 1})) {
      trip.Fail(std::move(*error));
      return true;
    }
    const Request request = MakeRequest(trip.order, trip.verbs, Freedoms());
    for (const Piece& piece : request.pieces) {
      if (std::optional<Error> error = Execute(connection, request, piece, trip.verbs[piece.verb])) {
        trip.Fail(std::move(*error));
        return true;
      }
    }
    trip.Succeed();
    return true;
  }

  void Detach(uint32_t, fabric::Order order, std::span<const Verb> verbs) override {
    const Request request = MakeRequest(order, verbs, Freedoms());
    std::vector<std::byte> answer(world_.scenario_.region_bytes + 8);
    for (const Piece& piece : request.pieces) TakeEffect(request, piece, world_.first_region_, answer);
  }

  void Note(const Event& event) override { world_.first_events_.push_back(world_.monitor_.NumberOf(event)); }
  void Forget(uint64_t) override {}

 private:
  std::optional<Error> Execute(uint32_t connection, const Request& request, const Piece& piece, Verb& verb) {
    std::array<std::byte, 8> word{};
    if (verb.kind == VerbKind::kFence) return std::nullopt;
    if (verb.kind == VerbKind::kCall) {
      const ClientId caller = IdOf(static_cast<uint32_t>(world_.layout_.actors()), connection);
      Result<std::string> reply = RunHandler(verb, caller, world_.scenario_.calls, world_.first_region_);
      if (!reply.ok()) return reply.error();
      *verb.reply = std::move(*reply);
    } else if (verb.kind == VerbKind::kRead) {
      TakeEffect(request, piece, world_.first_region_, {verb.into, verb.size});
    } else {
      TakeEffect(request, piece, world_.first_region_, word);
      verb.old = LoadU64(word.data());
    }
    return std::nullopt;
  }

  World& world_;
};

void World::SetUp() {
  SetUpWire wire(*this);
  Actor actor(static_cast<uint32_t>(layout_.actors()), scenario_, wire);
  Task<Done> task = scenario_.set_up(actor);
  task.Start();
  while (!task.done() && actor.Poll()) {
  }
  if (!task.done()) {
    Report(Conclusion::kUnfit, "the set-up waits for something that is not in flight");
    return;
  }
  const Result<Done> result = task.TakeResult();
  if (!result.ok())
    Report(Conclusion::kUnfit, fmt::format("the set-up failed: {}", result.error().ToString()));
}

}  // namespace farside::check::exhaustive
