#include <chrono>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "pool/region/describe.h"
#include "pool/region/superblock.h"
#include "tools/common/output.h"
#include "tools/demo/client.h"
#include "tools/demo/parts.h"

namespace farside::tools::demo {
namespace {

using fabric::Client;
using fabric::Op;
using fabric::OpKind;
using fabric::sim::SimClient;
using fabric::sim::SimFabric;
using fabric::sim::Trace;
using index::Index;

constexpr uint64_t kSimulatedBytes = 512 * 1024;
constexpr Nanos kShortLease = std::chrono::milliseconds(1);

// A put whose client dies with the first verb of it, which takes the lock.
void PutAndDie(SimFabric& world, DemoClient& demo_client) {
  world.set_fault({world.verbs_posted(), fabric::sim::FaultKind::kCrashAfter});
  Op op(*demo_client.client, OpKind::kInsert);
  Task<index::PutOutcome> put = demo_client.index().Put(op, "moon", "cheese");
  put.Start();
  while (!static_cast<SimClient&>(*demo_client.client).crashed() && world.Step()) continue;
}

Task<std::string> PutAndGet(Client& client, Index& table) {
  Op put(client, OpKind::kInsert);
  co_await table.Put(put, "moon", "rock");
  Op get(client, OpKind::kSearch);
  std::string value;
  const bool found = co_await table.Get(get, "moon", value);
  co_return found ? value : std::string("nothing");
}

// Reads a trace from front to back.
class TraceReader {
 public:
  explicit TraceReader(const std::vector<std::string>& lines) : lines_(lines) {}

  // The next line that has all of these words, in this order; the trace goes on after it.
  std::string Find(std::initializer_list<std::string_view> words) {
    for (; at_ < lines_.size(); ++at_) {
      if (Has(lines_[at_], words)) return lines_[at_++];
    }
    return "";
  }

  // How many lines up to the next with `end` have all of these words.
  size_t CountUntil(std::string_view end, std::initializer_list<std::string_view> words) const {
    size_t count = 0;
    for (size_t i = at_; i < lines_.size() && lines_[i].find(end) == std::string::npos; ++i) {
      if (Has(lines_[i], words)) ++count;
    }
    return count;
  }

 private:
  static bool Has(std::string_view line, std::initializer_list<std::string_view> words) {
    size_t from = 0;
    for (const std::string_view word : words) {
      from = line.find(word, from);
      if (from == std::string_view::npos) return false;
      from += word.size();
    }
    return true;
  }

  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

void TellTheStory(const Trace& trace, std::string_view value, const Paint& paint) {
  TraceReader reader(trace.lines());
  const auto show = [&](std::initializer_list<std::string_view> words) {
    Print(fmt::format("  {}\n", paint.Dim(reader.Find(words))));
  };
  Print("Client 1 takes the lock of the key's bucket, and dies:\n");
  show({"client 1", "MCAS", "done"});
  show({"client 1", "CRASHES"});
  Print("Client 2 wants that lock. It waits until the lease of its owner is over:\n");
  show({"client 2", "MCAS", "FAILED"});
  Print(fmt::format("  {:>10}               {} more attempts\n", "...",
                    reader.CountUntil("fences", {"client 2", "FAILED"})));
  Print("It fences client 1, so that nothing of client 1 can arrive late, and takes the lock over:\n");
  show({"client 2", "fences client 1"});
  show({"client 2", "CAS", "done"});
  Print("It writes what it came to write, and turns the head of the bucket to it:\n");
  show({"client 2  #", "WRITE", "image"});
  show({"client 2", "CAS", "done"});
  Print(fmt::format("The table is whole: client 2 reads moon = {}.\n", value));
}

}  // namespace

Status ShowCrash(const Paint& paint, int number) {
  Print(Heading(paint, number, "A client dies while it holds a lock"));
  Print(
      "In the simulator a fault can be put at any verb. The engine is reference, which is made to be "
      "simple:\n"
      "every change takes the lock of its bucket, by a compare-and-swap of some bits (MCAS). This is from "
      "the\n"
      "trace.\n\n");
  Trace trace;
  SimFabric world({.region_bytes = {kSimulatedBytes}, .chaos = fabric::sim::Chaos::Calm(), .trace = &trace});
  const Result<pool::Geometry> formatted =
      pool::FormatVolatile(world.memory(fabric::NodeId{0}), {.chunk_bytes = 4096}, {1, 2});
  if (!formatted.ok()) return formatted.error();
  DemoClient first;
  DemoClient second;
  for (DemoClient* demo_client : {&first, &second}) {
    demo_client->client = std::move(*world.Connect());
    if (Status settled = Run(*demo_client->client,
                             JoinWithTable(*demo_client, "reference", {.lease = {.lease = kShortLease}}));
        !settled.ok())
      return settled;
  }
  trace.set_describe([&](fabric::FarAddr at) {
    const std::string known = second.table->engine->Describe(at, second.table->info.roots);
    return known.empty() ? pool::Describe(at, *formatted) : known;
  });
  PutAndDie(world, first);
  const Result<std::string> value = Run(*second.client, PutAndGet(*second.client, second.index()));
  if (!value.ok()) return value.error();
  TellTheStory(trace, *value, paint);
  return Run(*second.client, Leave(second));
}

}  // namespace farside::tools::demo
