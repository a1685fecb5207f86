// Measures everything that the ledger holds, and prints it as one JSON object. ledger.py compares it with
// ledger.json.
#include <cstdio>

#include "tests/ledger/experiments.h"
#include "tests/ledger/figures.h"

namespace farside::ledger {
namespace {

Result<Figures> Measure() {
  Figures figures;
  for (const Subject& subject : Subjects()) {
    if (Status measured = MeasureKinds(subject, figures); !measured.ok()) return measured.error();
    if (Status measured = MeasureWorkloads(subject, figures); !measured.ok()) return measured.error();
  }
  if (Status measured = MeasureAlphas(figures); !measured.ok()) return measured.error();
  return figures;
}

}  // namespace
}  // namespace farside::ledger

int main() {
  const farside::Result<farside::ledger::Figures> figures = farside::ledger::Measure();
  if (!figures.ok()) {
    std::fprintf(stderr, "farside_ledger: %s\n", figures.error().ToString().c_str());
    return 3;
  }
  std::fputs(figures->ToJson().c_str(), stdout);
  return 0;
}
