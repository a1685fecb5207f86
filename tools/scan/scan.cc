#include "tools/scan/scan.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "farside/farside.h"
#include "store/engines.h"
#include "tools/common/output.h"
#include "tools/common/pool_table.h"
#include "tools/common/record_format.h"

namespace farside::tools {
namespace {

constexpr std::string_view kCalled = "farside scan";

// How the records are written. As they come, so that a large table needs no memory.
class Printer {
 public:
  explicit Printer(const ScanCommand& command) : command_(command) {}

  void Begin(const std::string& engine, bool ordered) {
    if (!command_.json) return;
    Print(fmt::format("{{{},{},\"ordered\":{},\"records\":[", FormatField("table", command_.table),
                      FormatField("engine", engine), ordered));
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

  void End(bool complete) {
    if (!command_.json) return;
    Print(fmt::format("],\"count\":{},\"records_read\":{},\"complete\":{}}}\n", count_, count_, complete));
  }

  uint64_t count() const { return count_; }

 private:
  std::string Shown(std::string_view bytes) const {
    return command_.encoding == Encoding::kPlain ? Readable(bytes) : Encode(bytes, command_.encoding);
  }

  const ScanCommand& command_;
  uint64_t count_ = 0;
};

// Pages of few records at first, as their size is not known; then as many as make a page of about this size.
constexpr size_t kFirstPage = 16;
constexpr size_t kLargestPage = 1024;
constexpr size_t kPageBytes = size_t{1} << 20;

size_t NextPage(size_t records, const std::vector<Record>& page) {
  size_t bytes = 0;
  for (const Record& record : page) bytes += record.key.size() + record.value.size();
  if (bytes > kPageBytes) return std::max<size_t>(1, records / 2);
  return std::min(kLargestPage, 2 * records);
}

// Which of the options was given that only an ordered table can follow; empty if none.
std::string_view NeedsOrder(const ScanCommand& command) {
  if (command.from.has_value()) return "--from";
  if (command.to.has_value()) return "--to";
  return command.prefix.has_value() ? "--prefix" : "";
}

ExitCode Unordered(const ScanCommand& command, const std::string& engine) {
  return CouldNotRun(
      kCalled,
      fmt::format(
          "table {} has the engine {}, which keeps keys in no order, but {} needs one; make a table of an "
          "ordered engine for that ({}), or scan all records, without {}",
          command.table, engine, NeedsOrder(command), store::OrderedEngineNames(), NeedsOrder(command)));
}

// The keys that all options together ask for.
Result<KeyRange> RangeOf(const ScanCommand& command) {
  KeyRange range;
  const auto decode = [&command](std::string_view option, const std::string& text) -> Result<std::string> {
    Result<std::string> bytes = Decode(text, command.encoding);
    if (bytes.ok()) return bytes;
    return Error(bytes.error().code(), fmt::format("{}: {}", option, bytes.error().message()));
  };
  if (command.prefix.has_value()) {
    const Result<std::string> prefix = decode("--prefix", *command.prefix);
    if (!prefix.ok()) return prefix.error();
    range = KeyRange::Prefix(*prefix);
  }
  if (command.from.has_value()) {
    const Result<std::string> from = decode("--from", *command.from);
    if (!from.ok()) return from.error();
    range.from = std::max(range.from, *from);
  }
  if (command.to.has_value()) {
    const Result<std::string> to = decode("--to", *command.to);
    if (!to.ok()) return to.error();
    range.to = range.to.has_value() ? std::min(*range.to, *to) : *to;
  }
  return range;
}

// A scan under way. Both forms print what they read at once, and end with true if there was nothing more to
// read.
class Scanner {
 public:
  Scanner(PoolTable& pool, Printer& printer, uint64_t limit)
      : pool_(pool), printer_(printer), limit_(limit) {}

  Result<bool> InOrder(const KeyRange& range) {
    RangeCursor cursor{.rest = range, .page_records = kFirstPage};
    for (size_t records = kFirstPage; GoesOn();) {
      cursor.page_records = std::min<uint64_t>(records, limit_ - printer_.count());
      const Result<bool> more = pool_.session().Next(pool_.table(), cursor, page_);
      if (!more.ok()) return more;
      if (!*more) return true;
      for (const Record& record : page_) printer_.Add(record);
      records = NextPage(records, page_);
    }
    return cursor.at_end;
  }

  Result<bool> InNoOrder() {
    Cursor cursor;
    while (GoesOn()) {
      const Result<bool> more = pool_.session().Next(pool_.table(), cursor, page_);
      if (!more.ok()) return more;
      if (!*more) return true;
      for (const Record& record : page_) {
        if (printer_.count() < limit_) printer_.Add(record);
      }
    }
    return false;
  }

 private:
  bool GoesOn() const { return printer_.count() < limit_ && !OutputIsBroken(); }

  PoolTable& pool_;
  Printer& printer_;
  const uint64_t limit_;
  std::vector<Record> page_;
};

}  // namespace

ExitCode Scan(const ScanCommand& command) {
  if (const std::optional<ExitCode> refused = RefuseTable(kCalled, command.table, std::nullopt))
    return *refused;
  const Result<KeyRange> range = RangeOf(command);
  if (!range.ok()) return WrongUsage(kCalled, range.error().message());
  Result<PoolTable> pool = PoolTable::OpenToLook(command.url, command.table);
  if (!pool.ok()) return CouldNotOpen(kCalled, command.url, command.table, pool.error(), Making::kNever);
  const bool ordered = pool->table().ordered();
  if (!ordered && !NeedsOrder(command).empty()) return Unordered(command, pool->table().engine());

  Printer printer(command);
  printer.Begin(pool->table().engine(), ordered);
  Scanner scanner(*pool, printer, command.limit.value_or(std::numeric_limits<uint64_t>::max()));
  const Result<bool> complete = ordered ? scanner.InOrder(*range) : scanner.InNoOrder();
  if (!complete.ok()) {
    return CouldNotRun(
        kCalled, fmt::format("{} (after {} records)", WhyNot(command.url, command.table, complete.error()),
                             Grouped(printer.count())));
  }
  pool->Close(kCalled);
  printer.End(*complete);
  return kSuccess;
}

}  // namespace farside::tools
