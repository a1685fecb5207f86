// The binary `farside-mutants`: `farside` with engines in which bugs can be planted, so that tests can see
// what a violation looks like. Not installed.
//
//   farside-mutants check --engine reference --crash --mutant reference/no-takeover
#include <string>

#include "base/mutant.h"
#include "index/kit/mutants.h"
#include "store/engines.h"
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
  for (const store::EngineEntry& engine : store::AllEngines()) {
    for (const MutantName& mutant : engine.mutants) mutants.names.emplace_back(mutant.text);
  }
  return mutants;
}

}  // namespace
}  // namespace farside::tools

int main(int argc, char** argv) {
  const farside::tools::MutantSwitch mutants = farside::tools::AllMutants();
  return farside::tools::Farside(argc, argv, &mutants);
}
