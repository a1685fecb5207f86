// A sentence of docs/memory-model.md that a test states. contract_test.cc holds the two together: every
// sentence is cited, and every citation is a part of its sentence.
//
//   const Cite kExact("fabric/2", "changes exactly its bytes");
//   TEST_P(FabricVerbs, WriteChangesExactlyItsBytes) { ... }
#pragma once

#include <string_view>
#include <vector>

namespace farside::fabric::conformance {

class Cite {
 public:
  Cite(std::string_view sentence, std::string_view quote) { All().push_back({sentence, quote}); }

  struct Citation {
    std::string_view sentence;
    std::string_view quote;
  };
  static std::vector<Citation>& All() {
    static std::vector<Citation> citations;
    return citations;
  }
};

}  // namespace farside::fabric::conformance
