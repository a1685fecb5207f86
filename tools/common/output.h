// Where text goes: results to stdout, everything else to stderr.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "farside/result.h"
#include "tools/common/exit_code.h"

namespace farside::tools {

// To stdout. A failure is remembered and reported by FinishOutput.
void Print(std::string_view text);

// Whether something could not be written, so that it makes no sense to go on.
bool OutputIsBroken();

// The exit code of the program: `code`, unless the results could not be written. If their reader has gone
// away, as `head` does, nothing is printed.
ExitCode FinishOutput(ExitCode code);

// Whether it is a pipe or a socket whose other end was closed.
bool ReaderIsGone(int descriptor);

// One line on stderr, and the exit code that goes with it. `command` is "farside" or "farside check".
ExitCode WrongUsage(std::string_view command, std::string_view why);
ExitCode CouldNotRun(std::string_view command, std::string_view why);
// The same for a pool URL that was not understood: wrong usage, unless other versions know it.
ExitCode BadUrl(std::string_view command, const Error& error);

// 1234567 as "1,234,567".
std::string Grouped(uint64_t number);

// "farside check --engine reference", from words; a word that a shell would not take as it is gets quotes.
std::string ShellQuoted(std::string_view word);

}  // namespace farside::tools
