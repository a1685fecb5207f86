// How libFuzzer calls a fuzzer.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  farside::fuzz::Try(farside::fuzz::Input(std::span(data, size)));
  return 0;
}
