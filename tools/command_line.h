// The command line: from words to the command that they ask for, or to one line that says what is wrong.
#pragma once

#include <string>
#include <variant>

#include "tools/bench.h"
#include "tools/check.h"
#include "tools/demo.h"
#include "tools/doctor.h"
#include "tools/export.h"
#include "tools/fsck.h"
#include "tools/import.h"
#include "tools/one_record.h"
#include "tools/paper.h"
#include "tools/scan.h"
#include "tools/serve.h"
#include "tools/status.h"
#include "tools/table.h"

namespace farside::tools {

// Help or a version: text that was asked for.
struct Answer {
  std::string text;
};

// No command at all.
struct NothingAsked {
  std::string help;
};

struct BadUsage {
  std::string command;  // "farside check": whose --help knows better
  std::string why;
};

using CommandLine =
    std::variant<Answer, NothingAsked, BadUsage, BenchCommand, CheckCommand, DelCommand, DoctorCommand,
                 DemoCommand, ExportCommand, FsckCommand, GetCommand, ImportCommand, PaperCommand, PutCommand,
                 ScanCommand, ServeCommand, StatusCommand, TableCommand>;

// `with_mutants` adds the option --mutant, for the test binary.
CommandLine ParseCommandLine(int argc, const char* const* argv, bool with_mutants);

}  // namespace farside::tools
