// The binary `farside-mutants`: `farside` with engines in which bugs can be planted, so that tests can see
// what a violation looks like. Not installed.
//
//   farside-mutants check --engine reference --crash --mutant reference/no-takeover
#include <string>

#include "base/mutant.h"
#include "index/chime/mutants.h"
#include "index/kit/mutants.h"
#include "index/reference/mutants.h"
#include "index/shard/mutants.h"
#include "tools/farside.h"

namespace farside::tools {
namespace {

ExitCode RunWithMutant(const std::string& name, const std::function<ExitCode()>& command) {
  const ScopedMutant on(MutantName{name.c_str()});
  return command();
}

MutantSwitch AllMutants() {
  MutantSwitch mutants{.names = {}, .run = RunWithMutant};
  for (const MutantName& mutant : index::kit::kAllMutants) mutants.names.emplace_back(mutant.text);
  for (const MutantName& mutant : index::reference::kAllMutants) mutants.names.emplace_back(mutant.text);
  for (const MutantName& mutant : index::chime::kAllMutants) mutants.names.emplace_back(mutant.text);
  for (const MutantName& mutant : index::shard::kAllMutants) mutants.names.emplace_back(mutant.text);
  return mutants;
}

}  // namespace
}  // namespace farside::tools

int main(int argc, char** argv) {
  const farside::tools::MutantSwitch mutants = farside::tools::AllMutants();
  return farside::tools::Farside(argc, argv, &mutants);
}
