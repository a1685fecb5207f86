// What the conformance suite needs to know about a backend, and how it drives its clients. A new backend is
// one entry in backend.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/fabric.h"
#include "fabric/run.h"
#include "farside/result.h"
#include "farside/task.h"

namespace farside::fabric::conformance {

struct WorldOptions {
  uint64_t seed = 1;  // means something to simulated backends only
  std::vector<uint64_t> region_bytes = {4096};
  std::optional<uint64_t> lose_completion_of_verb;  // counted from 0; see BackendUnderTest::can_lose
};

// What one client does; called on the client's own thread. Not a coroutine itself: it calls one.
using Program = std::function<Task<Done>(Client&)>;
struct Part {
  Client* client;
  Program program;
};

// A fabric, and the means to run clients on it at the same time.
class World {
 public:
  virtual ~World() = default;
  virtual Fabric& fabric() = 0;
  virtual CallTable& calls() = 0;
  virtual std::unique_ptr<Client> Connect();

  // Runs all parts at once until they have ended; their results are in the order of the parts. Parts of one
  // client run as operations of that client, overlapping.
  virtual std::vector<Result<Done>> Play(std::span<const Part> parts) = 0;
  // The same; a part that ends with an error fails the test.
  void PlayWell(std::span<const Part> parts);

  // What handlers have flushed.
  virtual FlushCounts flushed() { return fabric().flushed(); }

  // Makes a node forget its clients, and keep its memory.
  virtual void Restart(NodeId /*node*/) { ADD_FAILURE() << "this backend cannot do that"; }
};

struct BackendUnderTest {
  std::string name;
  std::unique_ptr<World> (*open)(const WorldOptions& options);
  bool simulated = false;    // one thread, and a seed decides what happens; otherwise a thread per client
  bool can_lose = false;     // WorldOptions::lose_completion_of_verb
  bool can_restart = false;  // World::Restart
  uint64_t rounds = 10000;   // of clients with threads; fewer where a trip costs system calls
};
std::vector<BackendUnderTest> AllBackends();
inline void PrintTo(const BackendUnderTest& backend, std::ostream* out) { *out << backend.name; }
inline std::string NameOf(const testing::TestParamInfo<BackendUnderTest>& info) { return info.param.name; }

class FabricTest : public testing::TestWithParam<BackendUnderTest> {
 protected:
  // How often a client repeats something within one world, and how many worlds there are. A simulated world
  // is cheap and differs from seed to seed; threads need many rounds to get into each other's way.
  static uint64_t Rounds();
  static uint64_t Worlds();

  template <class Scenario>
  void InManyWorlds(std::vector<uint64_t> region_bytes, Scenario scenario) {
    for (uint64_t seed = 1; seed <= Worlds(); ++seed) {
      SCOPED_TRACE(GetParam().name + ", seed " + std::to_string(seed));
      WorldOptions options;
      options.seed = seed;
      options.region_bytes = region_bytes;
      const std::unique_ptr<World> world = GetParam().open(options);
      scenario(*world);
      if (HasFailure()) return;
    }
  }
};

inline FarAddr At(uint64_t offset, uint16_t node = 0) { return FarAddr(NodeId{node}, offset); }
inline FarAddr Line(uint64_t line, uint16_t node = 0) { return At(line * kLineBytes, node); }

// A READ or a WRITE by itself, which must succeed.
uint64_t ReadWord(Client& client, FarAddr at);
std::vector<std::byte> ReadBytes(Client& client, FarAddr at, uint64_t bytes);
void WriteBytes(Client& client, FarAddr at, std::span<const std::byte> bytes);
void WriteWord(Client& client, FarAddr at, uint64_t word);

}  // namespace farside::fabric::conformance
