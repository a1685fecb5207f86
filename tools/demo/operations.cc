#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fabric/counters.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "pool/region/open.h"
#include "tools/common/output.h"
#include "tools/demo/client.h"
#include "tools/demo/parts.h"

namespace farside::tools::demo {
namespace {

using fabric::Client;
using fabric::Op;
using fabric::OpKind;
using fabric::OpTally;
using index::Index;

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
  return fmt::format("  {:<34}{:<12}{:>6}{:>7}   {:<21}{:>6} B {:>6} B\n", operation, answer,
                     tally.index_trips, tally.end_to_end_trips, VerbsOf(tally), read, written);
}

// Operations on a table, each of which prints its row.
class OperationsDemo {
 public:
  OperationsDemo(Client& client, Index& table) : client_(client), table_(table) {}

  Task<Done> Take() {
    co_await Insert("moon", "cheese");
    co_await Get("moon");
    co_await Update("moon", "rock");
    co_await CompareAndSet("moon", "rock", "dust");
    co_await Get("sun");
    co_await Put("sun", "hydrogen");
    co_await Increment("landings", 1);
    co_await Increment("landings", 5);
    co_await Scan();
    co_await Delete("moon");
    co_await Get("moon");
    co_return Done{};
  }

 private:
  Task<Done> Insert(std::string_view key, std::string_view value) {
    Op op(client_, OpKind::kInsert);
    const bool inserted = co_await table_.Insert(op, key, value);
    Print(Row(fmt::format("insert {} = {}", key, value), inserted ? "inserted" : "is there", op.tally()));
    co_return Done{};
  }

  Task<Done> Update(std::string_view key, std::string_view value) {
    Op op(client_, OpKind::kUpdate);
    const bool updated = co_await table_.Update(op, key, value);
    Print(Row(fmt::format("update {} = {}", key, value), updated ? "updated" : "absent", op.tally()));
    co_return Done{};
  }

  Task<Done> Put(std::string_view key, std::string_view value) {
    Op op(client_, OpKind::kInsert);
    co_await table_.Put(op, key, value);
    Print(Row(fmt::format("put {} = {}", key, value), "stored", op.tally()));
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

  Task<Done> Scan() {
    Op op(client_, OpKind::kScan);
    index::Cursor cursor;
    std::vector<index::Record> page;
    bool more = true;
    while (more) more = co_await table_.Next(op, cursor, page);
    Print(Row("go through all of it (a cursor)", fmt::format("{} records", page.size()), op.tally()));
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

// The first operation of a client reads what it must know of a table; the demo does that before it shows
// anything.
Task<Done> WarmUp(Client& client, Index& table) {
  Op op(client, OpKind::kSearch);
  std::string value;
  co_await table.Get(op, "nobody", value);
  co_return Done{};
}

}  // namespace

std::string Heading(const Paint& paint, int number, std::string_view text) {
  return fmt::format("\n{}\n\n", paint.Bold(fmt::format("{}. {}", number, text)));
}

Status ShowTable(const Paint& paint, int number) {
  Print(Heading(paint, number, "A table in far memory"));
  Print(
      "One memory node inside this process (the embedded backend) holds one table (engine shard, a hash "
      "table). Its\n"
      "client has only verbs to work with: READ, WRITE, compare-and-swap (CAS). Verbs that are posted "
      "together\n"
      "share a round trip; what an operation costs is the trips that it waits for, one after the other: "
      "those to\n"
      "the index, and all of them, end to end.\n\n");
  Print(paint.Dim(fmt::format("  {:<34}{:<12}{:>6}{:>7}   {:<21}{:>8} {:>8}", "operation", "answer", "index",
                              "trips", "verbs", "read", "written")) +
        "\n");
  Result<std::unique_ptr<pool::OpenedPool>> pool = pool::OpenPool("embedded:?size=16MiB", {});
  if (!pool.ok()) return pool.error();
  Result<std::unique_ptr<Client>> client = (*pool)->fabric->Connect();
  if (!client.ok()) return client.error();
  DemoClient demo_client;
  demo_client.client = std::move(*client);
  if (Status settled = Run(*demo_client.client, JoinWithTable(demo_client, "shard", {})); !settled.ok())
    return settled;
  if (Status warm = Run(*demo_client.client, WarmUp(*demo_client.client, demo_client.index())); !warm.ok())
    return warm;
  OperationsDemo demo(*demo_client.client, demo_client.index());
  if (Status taken = Run(*demo_client.client, demo.Take()); !taken.ok()) return taken;
  return Run(*demo_client.client, Leave(demo_client));
}

}  // namespace farside::tools::demo
