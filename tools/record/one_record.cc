#include "tools/record/one_record.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "farside/farside.h"
#include "tools/common/output.h"
#include "tools/common/pool_table.h"
#include "tools/common/record_format.h"
#include "tools/table/report.h"

namespace farside::tools {
namespace {

constexpr size_t kShownBytes = 60;

// Bytes of an operand that was given in some encoding.
Result<std::string> Operand(std::string_view name, std::string_view text, Encoding encoding, size_t most) {
  Result<std::string> bytes = Decode(text, encoding);
  if (!bytes.ok()) return Error(bytes.error().code(), fmt::format("{}: {}", name, bytes.error().message()));
  if (bytes->size() > most) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} has {} bytes; at most {} are possible", name,
                                                          Grouped(bytes->size()), Grouped(most)));
  }
  return bytes;
}

// All that stdin has, if a value can be that large.
Result<std::string> ReadStdin() {
  std::string bytes;
  size_t filled = 0;
  while (filled <= kMaxValueBytes) {
    if (filled == bytes.size()) bytes.resize(std::max<size_t>(size_t{64} << 10, 2 * filled));
    const ssize_t got = ::read(STDIN_FILENO, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error(ErrorCode::kUnavailable, fmt::format("stdin: {}", std::strerror(errno)));
    if (got == 0) {
      bytes.resize(filled);
      return bytes;
    }
    filled += static_cast<size_t>(got);
  }
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("stdin has more than {} bytes, the most that a value can have", Grouped(kMaxValueBytes)));
}

// The key as it was given, as far as it is short.
std::string Shown(const std::string& key) {
  return key.size() <= kShownBytes ? Readable(key) : Readable(key.substr(0, kShownBytes)) + "...";
}

ExitCode Absent(std::string_view command, const std::string& key, const std::string& table) {
  WriteToStderr(fmt::format("{}: there is no key \"{}\" in table {}\n", command, Shown(key), table));
  return kDoesNotHold;
}

std::string Flag(std::string_view name, bool value) { return fmt::format("\"{}\":{}", name, value); }

std::optional<TableOptions> Make(const PutCommand& command) {
  if (!command.create) return std::nullopt;
  return TableOptions{.engine = command.engine, .options = command.options};
}

std::string PutText(const PutCommand& command, const PoolTable& pool) {
  std::string text;
  if (pool.made()) text += fmt::format("created table {}: engine {}\n", command.table, pool.table().engine());
  if (IsEmbedded(command.url)) text += fmt::format("the record is gone again: {}\n", kLivesWithItsProcess);
  return text;
}

std::string PutJson(const PutCommand& command, const std::string& key, size_t bytes, const PoolTable& pool) {
  std::string text = fmt::format("{{{},{},\"value_bytes\":{},{}", FormatField("table", command.table),
                                 FormatField("key", key), bytes, Flag("created", pool.made()));
  if (IsEmbedded(command.url)) text += fmt::format(",{}", FormatField("note", kLivesWithItsProcess));
  return text + "}\n";
}

}  // namespace

ExitCode Put(const PutCommand& command) {
  constexpr std::string_view kCalled = "farside put";
  const std::optional<TableOptions> make = Make(command);
  if (const std::optional<ExitCode> refused = RefuseTable(kCalled, command.table, make)) return *refused;
  const Result<std::string> key = Operand("KEY", command.key, command.encoding, kMaxKeyBytes);
  if (!key.ok()) return WrongUsage(kCalled, key.error().message());
  Result<std::string> value = Operand("VALUE", "", command.encoding, kMaxValueBytes);
  if (command.value == "-") {
    value = ReadStdin();
    if (!value.ok()) return CouldNotRun(kCalled, value.error().message());
  } else {
    value = Operand("VALUE", command.value, command.encoding, kMaxValueBytes);
    if (!value.ok()) return WrongUsage(kCalled, value.error().message());
  }

  Result<PoolTable> pool = PoolTable::OpenToChange(command.url, command.table, make);
  if (!pool.ok())
    return CouldNotOpen(kCalled, command.url, command.table, pool.error(),
                        command.create ? Making::kRequested : Making::kOnRequest);
  const Status put = pool->session().Put(pool->table(), *key, *value);
  if (!put.ok()) return CouldNotRun(kCalled, WhyNot(command.url, command.table, put.error()));
  pool->Close(kCalled);
  Print(command.json ? PutJson(command, *key, value->size(), *pool) : PutText(command, *pool));
  return kSuccess;
}

ExitCode Get(const GetCommand& command) {
  constexpr std::string_view kCalled = "farside get";
  if (const std::optional<ExitCode> refused = RefuseTable(kCalled, command.table, std::nullopt))
    return *refused;
  const Result<std::string> key = Operand("KEY", command.key, command.encoding, kMaxKeyBytes);
  if (!key.ok()) return WrongUsage(kCalled, key.error().message());

  Result<PoolTable> pool = PoolTable::OpenToLook(command.url, command.table);
  if (!pool.ok()) return CouldNotOpen(kCalled, command.url, command.table, pool.error(), Making::kNever);
  const Result<std::optional<std::string>> value = pool->session().Get(pool->table(), *key);
  if (!value.ok()) return CouldNotRun(kCalled, WhyNot(command.url, command.table, value.error()));
  pool->Close(kCalled);
  const bool found = value->has_value();
  if (command.json) {
    Print(fmt::format("{{{},{},{},{}}}\n", FormatField("table", command.table), FormatField("key", *key),
                      Flag("found", found), found ? FormatField("value", **value) : "\"value\":null"));
    return found ? kSuccess : kDoesNotHold;
  }
  if (!found) return Absent(kCalled, *key, command.table);
  Print(Encode(**value, command.encoding));
  if (!command.raw) Print("\n");
  return kSuccess;
}

ExitCode Del(const DelCommand& command) {
  constexpr std::string_view kCalled = "farside del";
  if (const std::optional<ExitCode> refused = RefuseTable(kCalled, command.table, std::nullopt))
    return *refused;
  const Result<std::string> key = Operand("KEY", command.key, command.encoding, kMaxKeyBytes);
  if (!key.ok()) return WrongUsage(kCalled, key.error().message());

  Result<PoolTable> pool = PoolTable::OpenToChange(command.url, command.table, std::nullopt);
  if (!pool.ok()) return CouldNotOpen(kCalled, command.url, command.table, pool.error(), Making::kNever);
  const Result<bool> deleted = pool->session().Delete(pool->table(), *key);
  if (!deleted.ok()) return CouldNotRun(kCalled, WhyNot(command.url, command.table, deleted.error()));
  pool->Close(kCalled);
  if (command.json) {
    Print(fmt::format("{{{},{},{}}}\n", FormatField("table", command.table), FormatField("key", *key),
                      Flag("deleted", *deleted)));
    return *deleted ? kSuccess : kDoesNotHold;
  }
  return *deleted ? kSuccess : Absent(kCalled, *key, command.table);
}

}  // namespace farside::tools
