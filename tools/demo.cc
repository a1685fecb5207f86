#include "tools/demo.h"

#include <array>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "check/campaign.h"
#include "fabric/counters.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"
#include "pool/describe.h"
#include "pool/open.h"
#include "pool/superblock.h"
#include "store/engines.h"
#include "store/session.h"
#include "tools/check.h"
#include "tools/check_report.h"
#include "tools/output.h"
#include "tools/terminal.h"
#include "tools/version.h"

namespace farside::tools {
namespace {

using fabric::Client;
using fabric::Op;
using fabric::OpKind;
using fabric::OpTally;
using fabric::sim::SimClient;
using fabric::sim::SimFabric;
using fabric::sim::Trace;
using index::Index;
using index::reference::ReferenceEngine;

constexpr uint64_t kDemoSeeds = 5;
constexpr uint64_t kSimulatedBytes = 512 * 1024;
constexpr Nanos kShortLease = std::chrono::milliseconds(1);

std::string Heading(const Paint& paint, std::string_view text) {
  return fmt::format("\n{}\n\n", paint.Bold(text));
}

// ---- a table, and what its operations cost -----------------------------------------------------------

// "READ, WRITE, CAS"; several of a kind are counted: "3 READ".
std::string VerbsOf(const OpTally& tally) {
  std::string text;
  for (size_t kind = 0; kind < fabric::kVerbKinds; ++kind) {
    uint64_t count = 0;
    for (const fabric::VerbTally& part : tally.by_purpose) count += part.verbs[kind];
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    if (count > 1) text += fmt::format("{} ", count);
    text += Name(static_cast<fabric::VerbKind>(kind));
  }
  return text;
}

std::string Row(std::string_view operation, std::string_view answer, const OpTally& tally) {
  uint64_t read = 0;
  uint64_t written = 0;
  for (const fabric::VerbTally& part : tally.by_purpose) {
    read += part.bytes_read;
    written += part.bytes_written;
  }
  return fmt::format("  {:<34}{:<12}{:>5}   {:<24}{:>5} B  {:>5} B\n", operation, answer,
                     tally.end_to_end_trips, VerbsOf(tally), read, written);
}

// Operations on a table, each of which prints its row.
class Tour {
 public:
  Tour(Client& client, Index& table) : client_(client), table_(table) {}

  Task<Done> Take() {
    co_await Put("moon", "cheese");
    co_await Get("moon");
    co_await Put("moon", "rock");
    co_await CompareAndSet("moon", "rock", "dust");
    co_await Get("sun");
    co_await Increment("landings", 1);
    co_await Increment("landings", 5);
    co_await Delete("moon");
    co_await Get("moon");
    co_return Done{};
  }

 private:
  Task<Done> Put(std::string_view key, std::string_view value) {
    Op op(client_, OpKind::kInsert);
    const index::PutOutcome put = co_await table_.Put(op, key, value);
    const bool replaced = put == index::PutOutcome::kReplaced;
    Print(Row(fmt::format("put {} = {}", key, value), replaced ? "replaced" : "stored", op.tally()));
    co_return Done{};
  }

  Task<Done> Get(std::string_view key) {
    Op op(client_, OpKind::kSearch);
    std::string value;
    const bool found = co_await table_.Get(op, key, value);
    Print(Row(fmt::format("get {}", key), found ? value : "absent", op.tally()));
    co_return Done{};
  }

  Task<Done> CompareAndSet(std::string_view key, std::string_view expected, std::string_view value) {
    Op op(client_, OpKind::kUpdate);
    const bool applied = co_await table_.CompareAndSet(op, key, expected, value);
    Print(Row(fmt::format("compare {} = {}, set {}", key, expected, value), applied ? "applied" : "differs",
              op.tally()));
    co_return Done{};
  }

  Task<Done> Increment(std::string_view key, uint64_t by) {
    Op op(client_, OpKind::kUpdate);
    const uint64_t sum = co_await table_.Increment(op, key, by);
    Print(Row(fmt::format("increment {} by {}", key, by), fmt::format("{}", sum), op.tally()));
    co_return Done{};
  }

  Task<Done> Delete(std::string_view key) {
    Op op(client_, OpKind::kDelete);
    const bool deleted = co_await table_.Delete(op, key);
    Print(Row(fmt::format("delete {}", key), deleted ? "deleted" : "absent", op.tally()));
    co_return Done{};
  }

  Client& client_;
  Index& table_;
};

// Joins, makes or opens a table, and uses it; the session stays for whoever is shown next.
struct Guest {
  std::unique_ptr<Client> client;
  std::unique_ptr<store::Session> session;
  std::unique_ptr<index::OpenTable> table;

  Index& index() { return *table->index; }
};

Task<Done> Settle(Guest& guest, pool::ClientOptions options) {
  Op op(*guest.client, OpKind::kMaintenance);
  guest.session = co_await store::Session::Join(op, *guest.client, store::MakeEngine, options);
  index::OpenTable table = co_await guest.session->tables().CreateOrOpen(op, "demo", "reference", {});
  guest.table = std::make_unique<index::OpenTable>(std::move(table));
  co_return Done{};
}

Task<Done> Leave(Guest& guest) {
  Op op(*guest.client, OpKind::kMaintenance);
  co_await guest.session->Leave(op);
  co_return Done{};
}

Status ShowTable(const Paint& paint) {
  Print(Heading(paint, "1. A table in far memory"));
  Print(
      "One memory node inside this process (the embedded backend) holds one table (the reference engine,\n"
      "made to be simple). Its client has only verbs to work with: READ, WRITE, compare-and-swap (CAS;\n"
      "MCAS on some bits of a word). Verbs that are posted together share a round trip.\n\n");
  Print(paint.Dim(fmt::format("  {:<34}{:<12}{:>5}   {:<24}{:>7}  {:>7}", "operation", "answer", "trips",
                              "verbs", "read", "written")) +
        "\n");

  Result<std::unique_ptr<pool::OpenedPool>> pool = pool::OpenPool("embedded:?size=16MiB", {});
  if (!pool.ok()) return pool.error();
  Result<std::unique_ptr<Client>> client = (*pool)->fabric->Connect();
  if (!client.ok()) return client.error();
  Guest guest;
  guest.client = std::move(*client);
  if (Status settled = Run(*guest.client, Settle(guest, {})); !settled.ok()) return settled;
  Tour tour(*guest.client, guest.index());
  if (Status taken = Run(*guest.client, tour.Take()); !taken.ok()) return taken;
  return Run(*guest.client, Leave(guest));
}

// ---- a client dies -----------------------------------------------------------------------------------

// A put whose client dies with the first verb of it, which takes the lock.
void PutAndDie(SimFabric& world, Guest& guest) {
  world.set_fault({world.verbs_posted(), fabric::sim::FaultKind::kCrashAfter});
  Op op(*guest.client, OpKind::kInsert);
  Task<index::PutOutcome> put = guest.index().Put(op, "moon", "cheese");
  put.Start();
  while (!static_cast<SimClient&>(*guest.client).crashed() && world.Step()) continue;
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

Status ShowCrash(const Paint& paint) {
  Print(Heading(paint, "2. A client dies while it holds a lock"));
  Print("The same code in the simulator, where a fault can be put at any verb. This is from its trace.\n\n");
  Trace trace;
  SimFabric world({.region_bytes = {kSimulatedBytes}, .chaos = fabric::sim::Chaos::Calm(), .trace = &trace});
  const Result<pool::Geometry> formatted =
      pool::FormatVolatile(world.memory(fabric::NodeId{0}), {.chunk_bytes = 4096}, {1, 2});
  if (!formatted.ok()) return formatted.error();
  Guest first;
  Guest second;
  for (Guest* guest : {&first, &second}) {
    guest->client = std::move(*world.Connect());
    if (Status settled = Run(*guest->client, Settle(*guest, {.lease = {.lease = kShortLease}}));
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

// ---- a search for bugs -------------------------------------------------------------------------------

ExitCode ShowCampaign(const std::string& program, const Paint& paint) {
  Print(Heading(paint, "3. A search for bugs"));
  Print(
      "Four clients on three keys. The simulator reorders, tears and delays what it may, and a short run is\n"
      "repeated with a fault at each of its verbs. Every history is checked for linearizability.\n\n");
  CheckCommand command;
  command.program = program;
  command.engine = "reference";
  command.campaign.seeds = kDemoSeeds;
  command.campaign.crash = true;
  ReferenceEngine engine({});
  CheckResult result;
  {
    ProgressLine progress("checking", "seeds", kDemoSeeds, Nanos{0});
    result.report = check::RunCampaign(
        engine, command.campaign, [&](const check::CampaignReport& so_far) { progress.Show(so_far.seeds); });
  }
  if (!result.report.ok()) {
    Print(CampaignText(command, result));
    return kDoesNotHold;
  }
  Print(fmt::format("  {} seeds, {} histories, {} verbs, {} crash points: {}\n", Grouped(result.report.seeds),
                    Grouped(result.report.histories), Grouped(result.report.verbs),
                    Grouped(result.report.crash_points), paint.Green("0 violations")));
  return kSuccess;
}

void ShowNext(const std::string& program, const Paint& paint) {
  struct Hint {
    std::string_view arguments;
    std::string_view what;
  };
  constexpr std::array kHints = {
      Hint{"check --engine reference --seeds 200 --crash", "a longer search, of a minute or so"},
      Hint{"check --engine reference --replay 1:50:crash-after", "one run of it, verb by verb"},
      Hint{"doctor", "what this machine can do"},
      Hint{"help", "all commands"},
  };
  Print(Heading(paint, "What to try next"));
  for (const Hint& hint : kHints) {
    Print(fmt::format("  {} {:<54}{}\n", ShellQuoted(program), hint.arguments,
                      paint.Dim(fmt::format("# {}", hint.what))));
  }
}

}  // namespace

ExitCode Demo(const DemoCommand& command) {
  const Paint paint = Paint::ForStdout();
  Print(fmt::format("{} {}: key-value tables in far memory\n", paint.Bold("Farside"), Version()));
  if (Status status = ShowTable(paint); !status.ok())
    return CouldNotRun("farside demo", status.error().ToString());
  if (Status status = ShowCrash(paint); !status.ok())
    return CouldNotRun("farside demo", status.error().ToString());
  const ExitCode checked = ShowCampaign(command.program, paint);
  ShowNext(command.program, paint);
  return checked;
}

}  // namespace farside::tools
