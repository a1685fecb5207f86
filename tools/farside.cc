#include "tools/farside.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/log.h"
#include "tools/command_line.h"
#include "tools/common/output.h"

namespace farside::tools {
namespace {

ExitCode CheckWithMutant(const CheckCommand& command, const MutantSwitch& mutants) {
  const auto known = std::find(mutants.names.begin(), mutants.names.end(), command.mutant);
  if (known == mutants.names.end()) {
    return WrongUsage("farside check", fmt::format("there is no mutant '{}'; there is: {}",
                                                   Escape(command.mutant), fmt::join(mutants.names, ", ")));
  }
  return mutants.run(command.mutant, [&command] { return Check(command); });
}

ExitCode Dispatch(const CommandLine& line, const MutantSwitch* mutants) {
  if (const auto* answer = std::get_if<Answer>(&line)) {
    Print(answer->text);
    return kSuccess;
  }
  if (const auto* nothing = std::get_if<NothingAsked>(&line)) {
    WriteToStderr(nothing->help);
    return kWrongUsage;
  }
  if (const auto* bad = std::get_if<BadUsage>(&line)) return WrongUsage(bad->command, bad->why);
  if (const auto* bench = std::get_if<BenchCommand>(&line)) return Bench(*bench);
  if (const auto* doctor = std::get_if<DoctorCommand>(&line)) return Doctor(*doctor);
  if (const auto* demo = std::get_if<DemoCommand>(&line)) return Demo(*demo);
  if (const auto* fsck = std::get_if<FsckCommand>(&line)) return Fsck(*fsck);
  if (const auto* paper = std::get_if<PaperCommand>(&line)) return Paper(*paper);
  if (const auto* put = std::get_if<PutCommand>(&line)) return Put(*put);
  if (const auto* get = std::get_if<GetCommand>(&line)) return Get(*get);
  if (const auto* del = std::get_if<DelCommand>(&line)) return Del(*del);
  if (const auto* scan = std::get_if<ScanCommand>(&line)) return Scan(*scan);
  if (const auto* from = std::get_if<ImportCommand>(&line)) return Import(*from);
  if (const auto* to = std::get_if<ExportCommand>(&line)) return Export(*to);
  if (const auto* status = std::get_if<StatusCommand>(&line)) return PrintStatus(*status);
  if (const auto* serve = std::get_if<ServeCommand>(&line)) return Serve(*serve);
  if (const auto* table = std::get_if<TableCommand>(&line)) return Table(*table);
  const auto& check = std::get<CheckCommand>(line);
  return check.mutant.empty() ? Check(check) : CheckWithMutant(check, *mutants);
}

}  // namespace

int Farside(int argc, const char* const* argv, const MutantSwitch* mutants) {
  // A command that has joined a pool has to leave it, also if the reader of its output is gone.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return FinishOutput(Dispatch(ParseCommandLine(argc, argv, mutants != nullptr), mutants));
  } catch (const std::exception& failure) {  // ours throws nothing; the memory of the machine may end
    return CouldNotRun("farside", failure.what());
  }
}

}  // namespace farside::tools
