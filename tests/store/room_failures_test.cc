// What goes wrong while a session searches for room comes out as what it is.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pool/region/open.h"
#include "tests/store/quiet_pool.h"
#include "tests/support/wrapped_fabric.h"

namespace farside::store {
namespace {

// What all clients of the fabric below share.
struct Script {
  enum class What : uint8_t { kNothing, kFenced, kLost };
  What what = What::kNothing;
  uint64_t at = 0;     // it happens before this trip, counted from 1,
  uint64_t trips = 0;  // of the first victim; if the node is lost, of all clients that came after it, too
  uint64_t trips_of_successors = 0;  // of a client that was fenced
  uint64_t connected = 0;
  uint64_t first_victim = 0;

  bool Happens() const { return what != What::kNothing && trips >= at; }
};

class ClientThatMayFail final : public WrappedClient {
 public:
  ClientThatMayFail(std::unique_ptr<fabric::Client> inner, Script& script)
      : WrappedClient(std::move(inner)), script_(script), number_(script.connected++) {}

  using WrappedClient::Start;
  bool Start(fabric::Trip& trip) override {
    if (script_.what == Script::What::kNothing || number_ < script_.first_victim)
      return WrappedClient::Start(trip);
    const bool is_first = number_ == script_.first_victim;
    if (is_first || script_.what == Script::What::kLost) ++script_.trips;
    if (!script_.Happens()) return WrappedClient::Start(trip);
    if (script_.what == Script::What::kLost) {
      trip.Fail(Error(ErrorCode::kUnavailable, "the node is lost"));
      return true;
    }
    if (!is_first) {
      ++script_.trips_of_successors;
      return WrappedClient::Start(trip);
    }
    trip.Fail(Error(ErrorCode::kFenced, "the client is cut off"));
    return true;
  }

 private:
  Script& script_;
  const uint64_t number_;
};
using FabricThatMayFail = WrappedFabric<ClientThatMayFail, Script>;

// A pool without free memory, in which another session, which is idle, owns sparse chunks; and what becomes
// of a put, of which the n-th trip fails.
struct Attempt {
  std::optional<Error> error;
  bool happened = false;  // the trip; otherwise the put took fewer
  uint64_t trips_of_successors = 0;
};
Attempt PutThatFails(Script::What what, uint64_t at) {
  Script script;
  TickingClock clock(std::chrono::milliseconds(10));
  PoolStateOptions options;
  options.open.clock = &clock;
  options.keeper = false;
  std::unique_ptr<pool::OpenedPool> opened = Must(pool::OpenPool("embedded:?size=1MiB", options.open));
  opened->fabric = std::make_unique<FabricThatMayFail>(std::move(opened->fabric), script);
  const std::shared_ptr<PoolState> state = Must(PoolState::Serve(std::move(opened), options));
  Attempt attempt;
  {
    Pool pool(state);
    const Table table = Must(pool.CreateTable("t"));
    Session other = Must(pool.NewSession());
    const auto key = [](int i) { return "key-" + std::to_string(i); };
    int count = 0;
    while (other.Put(table, key(count), std::string(500, 'v')).ok()) ++count;
    for (int i = 0; i < count; ++i) {
      if (i % 7 == 0) continue;
      EXPECT_TRUE(Must(other.Delete(table, key(i))));
    }
    script.first_victim = script.connected;
    Session session = Must(pool.NewSession());
    EXPECT_EQ(Must(session.Get(table, "absent")), std::nullopt);  // it has the table open
    script.trips = 0;
    script.at = at;
    script.what = what;
    const Status put = session.Put(table, "new", std::string(1000, 'n'));
    attempt.happened = script.Happens();
    attempt.trips_of_successors = script.trips_of_successors;
    script.what = Script::What::kNothing;
    if (put.ok()) {
      EXPECT_EQ(Must(session.Get(table, "new")), std::string(1000, 'n'));
    } else {
      attempt.error = put.error();
    }
    state->Abandon();
  }
  return attempt;
}

TEST(RoomFailures, TheClientIsFenced_ANewRegistrationSearchesOn) {
  // Given a pool without free memory, of which another session could give back nearly all.
  // When a session puts a record, and is cut off before its n-th trip, for every n.
  // Expect that the record is put, or that a new registration has searched for room, in vain: the dead one
  // may hold up what waits for grace.
  uint64_t at = 1;
  for (bool happens = true; happens; ++at) {
    const Attempt attempt = PutThatFails(Script::What::kFenced, at);
    happens = attempt.happened;
    if (!attempt.error.has_value()) continue;
    ASSERT_TRUE(happens) << attempt.error->ToString();
    ASSERT_EQ(attempt.error->code(), ErrorCode::kOutOfMemory) << "trip " << at;
    ASSERT_GT(attempt.trips_of_successors, 50u) << "trip " << at << ": " << attempt.error->ToString();
  }
  EXPECT_GT(at, 50u) << "no room was searched";
}

TEST(RoomFailures, TheNodeIsLost_ThePutSaysSo) {
  // Given the same pool. When the node is lost before the n-th trip, for every n.
  // Expect that the put says that it is, and never that the pool is full.
  uint64_t at = 1;
  for (bool happens = true; happens; ++at) {
    const Attempt attempt = PutThatFails(Script::What::kLost, at);
    happens = attempt.happened;
    if (!attempt.error.has_value()) continue;  // what was lost came after its answer
    const ErrorCode code = attempt.error->code();
    ASSERT_TRUE(code == ErrorCode::kUnavailable || code == ErrorCode::kOutcomeUnknown)
        << "trip " << at << ": " << attempt.error->ToString();
  }
  EXPECT_GT(at, 50u) << "no room was searched";
}

}  // namespace
}  // namespace farside::store
