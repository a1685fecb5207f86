// The command line: from words to the command that they ask for, or to one line that says what is wrong.
#pragma once

#include <string>
#include <variant>

#include "tools/bench/bench.h"
#include "tools/check/check.h"
#include "tools/demo/demo.h"
#include "tools/doctor/doctor.h"
#include "tools/export/export.h"
#include "tools/fsck/fsck.h"
#include "tools/import/import.h"
#include "tools/paper/paper.h"
#include "tools/record/one_record.h"
#include "tools/scan/scan.h"
#include "tools/serve/serve.h"
#include "tools/status/status.h"
#include "tools/table/table.h"

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
