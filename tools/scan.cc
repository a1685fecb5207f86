#include "tools/scan.h"

#include <limits>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "farside/farside.h"
#include "tools/output.h"
#include "tools/pool_table.h"
#include "tools/record_format.h"

namespace farside::tools {
namespace {

constexpr std::string_view kCalled = "farside scan";

// How the records are written. As they come, so that a large table needs no memory.
class Printer {
 public:
  explicit Printer(const ScanCommand& command) : command_(command) {}

  void Begin(const std::string& engine) {
    if (!command_.json) return;
    Print(fmt::format("{{{},{},\"records\":[", FormatField("table", command_.table),
                      FormatField("engine", engine)));
  }

  void Add(const Record& record) {
    if (command_.json) {
      std::string object = FormatRecord(record.key, record.value);
      object.pop_back();  // its newline
      Print(count_ == 0 ? object : "," + object);
    } else {
      Print(fmt::format("{}\t{}\n", Shown(record.key), Shown(record.value)));
    }
    ++count_;
  }

  // `read`: how many records were looked at.
  void End(uint64_t read, bool complete) {
    if (!command_.json) return;
    Print(fmt::format("],\"count\":{},\"records_read\":{},\"complete\":{}}}\n", count_, read, complete));
  }

  uint64_t count() const { return count_; }

 private:
  std::string Shown(std::string_view bytes) const {
    return command_.encoding == Encoding::kPlain ? Readable(bytes) : Encode(bytes, command_.encoding);
  }

  const ScanCommand& command_;
  uint64_t count_ = 0;
};

ExitCode Unordered(const ScanCommand& command, const std::string& engine) {
  return CouldNotRun(
      kCalled,
      fmt::format(
          "table {} has the engine {}, which keeps keys in no order, but {} needs one; --prefix works "
          "with every engine, and so does no option at all",
          command.table, engine, command.from.has_value() ? "--from" : "--to"));
}

}  // namespace

ExitCode Scan(const ScanCommand& command) {
  if (const std::optional<ExitCode> refused = RefuseTable(kCalled, command.table, std::nullopt))
    return *refused;
  const Result<std::string> prefix = Decode(command.prefix.value_or(""), command.encoding);
  if (!prefix.ok()) return WrongUsage(kCalled, fmt::format("--prefix: {}", prefix.error().message()));
  Result<PoolTable> pool = PoolTable::OpenToLook(command.url, command.table);
  if (!pool.ok()) return CouldNotOpen(kCalled, command.url, command.table, pool.error(), Making::kNever);
  // No engine of this version keeps keys in order.
  if (command.from.has_value() || command.to.has_value()) return Unordered(command, pool->table().engine());

  const uint64_t limit = command.limit.value_or(std::numeric_limits<uint64_t>::max());
  Printer printer(command);
  printer.Begin(pool->table().engine());
  uint64_t read = 0;
  Cursor cursor;
  std::vector<Record> page;
  bool more = limit > 0;
  while (more && printer.count() < limit && !OutputIsBroken()) {
    const Result<bool> next = pool->session().Next(pool->table(), cursor, page);
    if (!next.ok()) {
      return CouldNotRun(kCalled,
                         fmt::format("{} (after {} records)", next.error().message(), Grouped(read)));
    }
    more = *next;
    for (const Record& record : page) {
      if (printer.count() == limit) break;
      ++read;
      if (record.key.starts_with(*prefix)) printer.Add(record);
    }
  }
  pool->Close(kCalled);
  printer.End(read, !more);
  if (command.prefix.has_value() && !command.json && !OutputIsBroken()) {
    WriteToStderr(fmt::format("{}: read {} record{} to find {} with this prefix: {} keeps keys in no order\n",
                              kCalled, Grouped(read), read == 1 ? "" : "s", Grouped(printer.count()),
                              pool->table().engine()));
  }
  return kSuccess;
}

}  // namespace farside::tools
