// The part of the command line that is about records: put, get, del, scan, import, export; and status.
#pragma once

#include <string>

#include <CLI/App.hpp>

#include "tools/export/export.h"
#include "tools/import/import.h"
#include "tools/record/one_record.h"
#include "tools/scan/scan.h"
#include "tools/status/status.h"

namespace farside::tools {

// Each adds a command to the program that fills `command`, which must outlive it.
CLI::App* AddDel(CLI::App& app, DelCommand& command);
CLI::App* AddExport(CLI::App& app, ExportCommand& command);
CLI::App* AddGet(CLI::App& app, GetCommand& command);
CLI::App* AddImport(CLI::App& app, ImportCommand& command);
CLI::App* AddPut(CLI::App& app, PutCommand& command);
CLI::App* AddScan(CLI::App& app, ScanCommand& command);
CLI::App* AddStatus(CLI::App& app, StatusCommand& command);

// What is wrong with a command as a whole; empty if nothing is. `Command` has --create, --engine and
// --option.
template <class Command>
std::string ProblemOfMaking(const Command& command) {
  if (command.create || (command.engine.empty() && command.options.empty())) return "";
  return "--engine and --option are for a table that is made; add --create";
}

}  // namespace farside::tools
