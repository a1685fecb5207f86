#include "tools/record_command_line.h"

#include <limits>

#include "tools/common/command_options.h"

namespace farside::tools {
namespace {

constexpr const char* kPutFooter =
    R"(Inserts the record, or replaces the value. KEY and VALUE are the bytes that the shell hands over; with
--hex or --base64 they may be any bytes. VALUE '-' is what stdin has, as it is. A KEY or VALUE that
begins with '-' stands behind '--'. Keys have at most 64 KiB, values 64 MiB.

If there is no such table, nothing is done, unless --create is given.

Examples:
  farside put 'file:pool.farside?size=64MiB' users ada countess --create
  farside put file:pool.farside users --hex 00ff 0102
  farside put file:pool.farside users readme - <README.md
  farside put file:pool.farside users -- -5 minus-five)";

constexpr const char* kGetFooter =
    R"(Prints the value and a newline; with --raw, the value alone. If there is no such key, nothing is
printed to stdout, and the exit code is 1. With --hex or --base64, the key is given and the value printed
in that form.

Examples:
  farside get file:pool.farside users ada
  farside get file:pool.farside users ada --raw
  farside get file:pool.farside users --hex 00ff
  farside get file:pool.farside users ada --json)";

constexpr const char* kDelFooter =
    R"(If there is no such key, the exit code is 1.

Examples:
  farside del file:pool.farside users ada
  farside del file:pool.farside users --hex 00ff --json)";

constexpr const char* kScanFooter =
    R"(One line for each record: the key, a tab, the value. What is no UTF-8, or a control character, is shown
as \xNN, and a tab, a newline and a backslash as \t, \n and \\; with --hex or --base64, everything is
shown in that form.

Tables of an ordered engine show their records in the order of the bytes of their keys, and --from, --to and
--prefix take a part of them: keys from KEY on, keys before KEY, and keys that begin with KEY. Other tables show
all records in no order, and refuse these options.

Examples:
  farside scan file:pool.farside users
  farside scan file:pool.farside users --limit 10 --json
  farside table create file:pool.farside sorted --engine chime
  farside scan file:pool.farside sorted --prefix ad
  farside scan file:pool.farside sorted --from b --to d)";

constexpr const char* kImportFooter =
    R"(One record for each line, as JSON: {"key":"ada","value":"countess"}. Bytes that are no UTF-8 are given
in base64, as "key64" and "value64". Empty lines mean nothing. A key that is there gets the new value.
FILE is '-' or left out for stdin.

The import ends at the first line that is wrong; those before it are imported, and may be imported again.

Examples:
  farside import file:pool.farside users users.jsonl
  farside import 'file:pool.farside?size=64MiB' people --create <users.jsonl
  farside import file:pool.farside people users.jsonl --json)";

constexpr const char* kExportFooter =
    R"(One line for each record, as 'farside import' reads it. FILE is '-' or left out for stdout. A file is
written under another name, and gets its own when it is complete. Of a table that is damaged,
FILE.partial has what could be read.

Others may change the table meanwhile: a record that comes or goes may be there or not.

Examples:
  farside export file:pool.farside users users.jsonl
  farside export file:pool.farside users >users.jsonl
  farside export file:pool.farside users users.jsonl --json)";

constexpr const char* kStatusFooter =
    R"(Nodes: free is what is in chunks without an owner, and used is the rest. Clients: the registered ones,
and when each gave the last sign of life; clients that run are watched for up to a second and a half.
Tables: what the catalog knows; with --records also their records and bytes, which takes a walk through
every table. Exits with 1 if something is damaged.

A file is used by one process at a time, so no client runs in one that can be looked at.

Examples:
  farside status file:pool.farside
  farside status --json file:pool.farside
  farside status --records file:pool.farside)";

constexpr double kLongestWatch = 600;

CLI::App* AddCommand(CLI::App& app, const char* name, const char* about, const char* footer, std::string& url,
                     std::string& table) {
  CLI::App* command = app.add_subcommand(name, about);
  command->footer(footer);
  AddUrl(*command, url);
  AddOperand(*command, "TABLE", table, "The table");
  return command;
}

void AddJson(CLI::App& app, bool& into) { AddFlag(app, "--json", into, "Print one JSON object"); }

void AddEncoding(CLI::App& app, Encoding& into, const std::string& of) {
  CLI::Option* const hex = app.add_flag_callback(
      "--hex", [&into] { into = Encoding::kHex; }, of + " in hexadecimal");
  CLI::Option* const base64 = app.add_flag_callback(
      "--base64", [&into] { into = Encoding::kBase64; }, of + " in base64");
  hex->disable_flag_override();
  base64->disable_flag_override()->excludes(hex);
}

template <class Command>
void AddMaking(CLI::App& app, Command& command) {
  AddFlag(app, "--create", command.create, "Make the table if it is not there");
  AddEngine(app, command.engine, "The engine of a table that is made");
  AddEngineOptions(app, command.options);
}

}  // namespace

CLI::App* AddDel(CLI::App& app, DelCommand& command) {
  CLI::App* del = AddCommand(app, "del", "Delete a record", kDelFooter, command.url, command.table);
  AddOperand(*del, "KEY", command.key, "The key");
  AddEncoding(*del, command.encoding, "KEY is");
  AddJson(*del, command.json);
  return del;
}

CLI::App* AddExport(CLI::App& app, ExportCommand& command) {
  CLI::App* to = AddCommand(app, "export", "Write the records of a table to a file", kExportFooter,
                            command.url, command.table);
  AddOptionalOperand(*to, "FILE", command.file, "The file; by default stdout");
  AddFlag(*to, "--json", command.json, "Print one JSON object: how much was exported; needs FILE");
  return to;
}

CLI::App* AddGet(CLI::App& app, GetCommand& command) {
  CLI::App* get = AddCommand(app, "get", "Print the value of a key", kGetFooter, command.url, command.table);
  AddOperand(*get, "KEY", command.key, "The key");
  AddFlag(*get, "--raw", command.raw, "Print no newline behind the value");
  AddEncoding(*get, command.encoding, "KEY is, and the value is printed,");
  AddJson(*get, command.json);
  return get;
}

CLI::App* AddImport(CLI::App& app, ImportCommand& command) {
  CLI::App* from = AddCommand(app, "import", "Put the records of a file into a table", kImportFooter,
                              command.url, command.table);
  AddOptionalOperand(*from, "FILE", command.file, "The file; by default stdin");
  AddMaking(*from, command);
  AddJson(*from, command.json);
  return from;
}

CLI::App* AddPut(CLI::App& app, PutCommand& command) {
  CLI::App* put = AddCommand(app, "put", "Put a record into a table", kPutFooter, command.url, command.table);
  AddOperand(*put, "KEY", command.key, "The key");
  AddOperand(*put, "VALUE", command.value, "The value; '-': what stdin has");
  AddEncoding(*put, command.encoding, "KEY and VALUE are");
  AddMaking(*put, command);
  AddJson(*put, command.json);
  return put;
}

CLI::App* AddScan(CLI::App& app, ScanCommand& command) {
  CLI::App* scan =
      AddCommand(app, "scan", "Print the records of a table", kScanFooter, command.url, command.table);
  AddText(*scan, "--from", command.from, "KEY", "Only keys from this one on; needs an ordered table");
  AddText(*scan, "--to", command.to, "KEY", "Only keys before this one; needs one too");
  AddText(*scan, "--prefix", command.prefix, "KEY", "Only keys that begin with this; needs one too");
  AddNumber(*scan, "--limit", command.limit, 0, std::numeric_limits<uint64_t>::max(),
            "Print so many records at most");
  AddEncoding(*scan, command.encoding, "Keys and values are");
  AddJson(*scan, command.json);
  return scan;
}

CLI::App* AddStatus(CLI::App& app, StatusCommand& command) {
  CLI::App* status = app.add_subcommand("status", "Show nodes, clients, memory and tables of a pool");
  status->footer(kStatusFooter);
  AddUrl(*status, command.url);
  AddFlag(*status, "--records", command.records, "Walk every table, and count its records and bytes");
  AddSeconds(*status, "--watch", command.watch, kLongestWatch,
             "How long clients are watched for signs of life; by default 1.5");
  AddJson(*status, command.json);
  return status;
}

}  // namespace farside::tools
