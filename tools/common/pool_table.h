// A table of a pool that a command has opened by the public interface, and the command's session.
//
// A command that only looks at a pool in a file has a copy, which shares with the file what it does not
// change: so nothing reaches the file, any number of commands look at it at the same time, and it need not be
// writable. Any other pool is joined.
//
// A command that cannot run should leave a file as it was. So a command that changes one looks first whether
// the table is there, or can be made.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "farside/farside.h"
#include "tools/common/exit_code.h"

namespace farside::tools {

class PoolTable {
 public:
  static Result<PoolTable> OpenToLook(const std::string& url, const std::string& name);
  // With `make`, the table is made if it is not there, and the pool if it is a file that is not there and has
  // a size.
  static Result<PoolTable> OpenToChange(const std::string& url, const std::string& name,
                                        const std::optional<TableOptions>& make);

  Session& session() { return session_; }
  const farside::Table& table() const { return table_; }
  bool made() const { return made_; }  // the table was not there before

  // Leaves the pool. A failure is a line on stderr and nothing more, since all that was done stays done. For
  // a copy it does nothing.
  void Close(std::string_view command);

 private:
  PoolTable(Pool pool, farside::Table table, bool made, Session session)
      : pool_(std::move(pool)), table_(std::move(table)), made_(made), session_(std::move(session)) {}

  static Result<PoolTable> Join(Pool pool, const std::string& name, const std::optional<TableOptions>& make);

  bool is_copy_ = false;
  Pool pool_;
  farside::Table table_;
  bool made_;
  Session session_;
};

// Of sessions in a file, which has no other clients: what dead clients have left there is cleared up soon.
inline constexpr std::chrono::milliseconds kLeaseInFile = std::chrono::seconds(1);

// Whether the URL names a pool that is made for the command and gone with it.
bool IsEmbedded(std::string_view url);

// Line and exit code if the name can be none of a table, or the table to be made can be none; otherwise
// nothing.
std::optional<ExitCode> RefuseTable(std::string_view command, const std::string& name,
                                    const std::optional<TableOptions>& make);

// Whether a command makes tables that are missing.
enum class Making : uint8_t { kNever, kOnRequest, kRequested };

// Line and exit code for a table that could not be opened: what is wrong, and what to do about it.
ExitCode CouldNotOpen(std::string_view command, const std::string& url, const std::string& name,
                      const Error& error, Making making);

// Why an operation on an open table failed. A table that is damaged is said to be so, with what to do.
std::string WhyNot(const std::string& url, const std::string& name, const Error& error);

}  // namespace farside::tools
