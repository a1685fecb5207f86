#include "tools/export/export.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "farside/farside.h"
#include "tools/common/output.h"
#include "tools/common/pool_table.h"
#include "tools/common/record_format.h"
#include "tools/common/terminal.h"
#include "tools/export/output_file.h"

namespace farside::tools {
namespace {

constexpr std::string_view kCalled = "farside export";
constexpr Nanos kPatience = std::chrono::seconds(2);

struct Exported {
  uint64_t records = 0;
  uint64_t bytes = 0;  // of keys and values
};

// Why the export ended before its time.
struct Stop {
  Error error;
  bool of_table = false;  // not of the file
};

std::optional<Stop> ExportRecords(PoolTable& pool, OutputFile& file, Exported& exported) {
  ProgressLine progress("exporting", "records", 0, kPatience);
  Cursor cursor;
  std::vector<Record> page;
  while (true) {
    const Result<bool> more = pool.session().Next(pool.table(), cursor, page);
    if (!more.ok()) return Stop{more.error(), true};
    if (!*more) return std::nullopt;
    for (const Record& record : page) {
      const Status written = file.Write(FormatRecord(record.key, record.value));
      if (!written.ok()) return Stop{written.error(), false};
      ++exported.records;
      exported.bytes += record.key.size() + record.value.size();
    }
    progress.Show(exported.records);
  }
}

std::string Count(uint64_t records) {
  return fmt::format("{} record{}", Grouped(records), records == 1 ? "" : "s");
}

// A table that is damaged in the middle: what stands before that is kept, for it may be all that is left.
ExitCode Damaged(const ExportCommand& command, const Error& error, OutputFile& file,
                 const Exported& exported) {
  const Result<std::string> partial = file.FinishPartial();
  std::string kept;
  if (partial.ok() && !partial->empty()) kept = fmt::format(", and stand in {}", Escape(*partial));
  return CouldNotRun(
      kCalled, fmt::format("{}; {} could be read before that{}", WhyNot(command.url, command.table, error),
                           Count(exported.records), kept));
}

ExitCode EndEarly(const ExportCommand& command, const Stop& stop, OutputFile& file,
                  const Exported& exported) {
  if (stop.of_table && stop.error.code() == ErrorCode::kCorrupt)
    return Damaged(command, stop.error, file, exported);
  if (!stop.of_table && file.reader_is_gone()) return kCouldNotRun;
  return CouldNotRun(kCalled, stop.error.message() + (file.is_regular() ? "; nothing was exported" : ""));
}

}  // namespace

ExitCode Export(const ExportCommand& command) {
  if (const std::optional<ExitCode> refused = RefuseTable(kCalled, command.table, std::nullopt))
    return *refused;
  if (command.json && command.file == "-") {
    return WrongUsage(kCalled, "--json needs a FILE: without one, stdout has the records");
  }
  Result<PoolTable> pool = PoolTable::OpenToLook(command.url, command.table);
  if (!pool.ok()) return CouldNotOpen(kCalled, command.url, command.table, pool.error(), Making::kNever);
  Result<OutputFile> file = OutputFile::Open(command.file);
  if (!file.ok()) return CouldNotRun(kCalled, file.error().message());

  const SteadyClock clock;
  const Nanos start = clock.Now();
  Exported exported;
  std::optional<Stop> stop = ExportRecords(*pool, *file, exported);
  pool->Close(kCalled);
  if (!stop.has_value()) {
    if (const Status finished = file->Finish(); !finished.ok()) stop = Stop{finished.error(), false};
  }
  if (stop.has_value()) return EndEarly(command, *stop, *file, exported);

  const double seconds = std::chrono::duration<double>(clock.Now() - start).count();
  if (command.json) {
    Print(fmt::format("{{{},{},\"records\":{},\"bytes\":{},\"seconds\":{:.6f}}}\n",
                      FormatField("table", command.table), FormatField("file", command.file),
                      exported.records, exported.bytes, seconds));
    return kSuccess;
  }
  const std::string text =
      fmt::format("exported {} of table {}: {} bytes of keys and values in {:.1f} s\n",
                  Count(exported.records), command.table, Grouped(exported.bytes), seconds);
  if (file->is_regular()) {
    Print(text);
  } else {
    WriteToStderr(text);
  }
  return kSuccess;
}

}  // namespace farside::tools
