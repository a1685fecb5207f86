// Records go in batches, whose puts overlap and take effect in any order. So that the last of several lines
// with the same key counts, a batch has no key twice: a second one waits for the next batch.
#include "tools/import/import.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "farside/farside.h"
#include "tools/common/output.h"
#include "tools/common/pool_table.h"
#include "tools/common/record_format.h"
#include "tools/common/terminal.h"
#include "tools/import/line_source.h"
#include "tools/table/report.h"

namespace farside::tools {
namespace {

constexpr std::string_view kCalled = "farside import";
constexpr size_t kBatchRecords = 1024;
constexpr size_t kBatchBytes = size_t{16} << 20;
constexpr Nanos kPatience = std::chrono::seconds(2);

struct Imported {
  uint64_t records = 0;
  uint64_t bytes = 0;  // of keys and values
  uint64_t lines = 0;
};

// Where the import ended before its time.
struct Stop {
  uint64_t line = 0;  // 0: not at a line
  std::string why;
  bool behind_too = false;  // records behind this line may have been imported
};

// Puts what it is given into the table, many at a time.
class Batch {
 public:
  Batch(Session& session, const farside::Table& table) : session_(session), table_(table) {
    records_.reserve(kBatchRecords);  // the views of items_ and keys_ stay valid
  }

  std::optional<Stop> Add(Record record, uint64_t line) {
    if (records_.size() == kBatchRecords || bytes_ > kBatchBytes || keys_.contains(record.key)) {
      if (std::optional<Stop> stop = Flush()) return stop;
    }
    records_.push_back(std::move(record));
    lines_.push_back(line);
    keys_.insert(records_.back().key);
    bytes_ += records_.back().key.size() + records_.back().value.size();
    return std::nullopt;
  }

  std::optional<Stop> Flush() {
    items_.clear();
    for (const Record& record : records_) items_.push_back({.key = record.key, .value = record.value});
    const Status put = session_.MultiPut(table_, items_);
    std::optional<Stop> stop;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].status.ok()) {
        ++imported_.records;
        imported_.bytes += records_[i].key.size() + records_[i].value.size();
      } else if (!stop.has_value()) {
        stop = Stop{lines_[i], items_[i].status.error().message(), true};
      }
    }
    if (!put.ok() && !stop.has_value()) stop = Stop{lines_.front(), put.error().message(), true};
    keys_.clear();
    records_.clear();
    lines_.clear();
    bytes_ = 0;
    return stop;
  }

  const Imported& imported() const { return imported_; }

 private:
  Session& session_;
  const farside::Table& table_;
  std::vector<Record> records_;
  std::vector<uint64_t> lines_;  // of the records
  std::unordered_set<std::string_view> keys_;
  size_t bytes_ = 0;
  std::vector<PutItem> items_;
  Imported imported_;
};

// What can be read and understood of the file, up to the first line that cannot.
std::optional<Stop> ImportLines(LineSource& lines, Batch& batch) {
  const uint64_t kibibytes = lines.file_bytes() >> 10;
  ProgressLine progress("importing", kibibytes > 0 ? "KiB" : "records", kibibytes, kPatience);
  std::string_view line;
  while (true) {
    const Result<bool> more = lines.Next(line, kMostLineBytes);
    if (!more.ok()) {
      const bool of_the_line = more.error().code() == ErrorCode::kInvalidArgument;
      return Stop{of_the_line ? lines.lines() : 0, more.error().message()};
    }
    if (!*more) return std::nullopt;
    Result<std::optional<Record>> record = ParseRecord(line);
    if (!record.ok()) return Stop{lines.lines(), record.error().message()};
    if (record->has_value()) {
      if (std::optional<Stop> stop = batch.Add(std::move(**record), lines.lines())) return stop;
    }
    progress.Show(kibibytes > 0 ? lines.bytes_read() >> 10 : batch.imported().records);
  }
}

std::string StopText(const ImportCommand& command, const Stop& stop, const Imported& imported) {
  std::string where;
  if (stop.line > 0) {
    where = fmt::format("{}, line {}: ", command.file == "-" ? "stdin" : Escape(command.file), stop.line);
  }
  const uint64_t records = imported.records;
  std::string done = "nothing was imported";
  if (records > 0) {
    done = fmt::format("{} record{} imported, all of those before {}{}", Grouped(records),
                       records == 1 ? " was" : "s were", stop.line > 0 ? "this line" : "that",
                       stop.behind_too ? " and perhaps some behind it" : "");
  }
  return fmt::format("{}{}; {}", where, stop.why, done);
}

std::string Text(const ImportCommand& command, const Imported& imported, double seconds,
                 const PoolTable& pool) {
  std::string text;
  if (pool.made()) text += fmt::format("created table {}: engine {}\n", command.table, pool.table().engine());
  text += fmt::format("imported {} record{} into table {}: {} bytes of keys and values in {:.1f} s\n",
                      Grouped(imported.records), imported.records == 1 ? "" : "s", command.table,
                      Grouped(imported.bytes), seconds);
  if (IsEmbedded(command.url)) text += fmt::format("they are gone again: {}\n", kLivesWithItsProcess);
  return text;
}

std::string Json(const ImportCommand& command, const Imported& imported, double seconds,
                 const PoolTable& pool) {
  return fmt::format(
      "{{{},\"records\":{},\"lines\":{},\"bytes\":{},\"seconds\":{:.6f},\"created\":{}{}}}\n",
      FormatField("table", command.table), imported.records, imported.lines, imported.bytes, seconds,
      pool.made(), IsEmbedded(command.url) ? "," + FormatField("note", kLivesWithItsProcess) : std::string());
}

}  // namespace

ExitCode Import(const ImportCommand& command) {
  std::optional<TableOptions> make;
  if (command.create) make = TableOptions{.engine = command.engine, .options = command.options};
  if (const std::optional<ExitCode> refused = RefuseTable(kCalled, command.table, make)) return *refused;
  Result<LineSource> lines = LineSource::Open(command.file);
  if (!lines.ok()) return CouldNotRun(kCalled, lines.error().message());
  Result<PoolTable> pool = PoolTable::OpenToChange(command.url, command.table, make);
  if (!pool.ok()) {
    return CouldNotOpen(kCalled, command.url, command.table, pool.error(),
                        command.create ? Making::kRequested : Making::kOnRequest);
  }
  const SteadyClock clock;
  const Nanos start = clock.Now();
  Batch batch(pool->session(), pool->table());
  std::optional<Stop> stop = ImportLines(*lines, batch);
  // What stands before a line that is wrong is imported; if that fails, it is the first thing that went
  // wrong.
  const std::optional<Stop> last = batch.Flush();
  if (last.has_value() && !(stop.has_value() && stop->behind_too)) stop = last;
  const double seconds = std::chrono::duration<double>(clock.Now() - start).count();
  Imported imported = batch.imported();
  imported.lines = lines->lines();
  pool->Close(kCalled);
  if (stop.has_value()) return CouldNotRun(kCalled, StopText(command, *stop, imported));
  Print(command.json ? Json(command, imported, seconds, *pool) : Text(command, imported, seconds, *pool));
  return kSuccess;
}

}  // namespace farside::tools
