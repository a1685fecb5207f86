// The binary under test. ctest names it in the environment: a path compiled in would be another one in every
// clone, and ccache could not share what was compiled.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace farside::processes {

inline std::string BinaryPath() {
  const char* const path = std::getenv("FARSIDE_BINARY");
  if (path != nullptr) return path;
  std::fputs("set FARSIDE_BINARY to the path of the farside binary, as ctest does\n", stderr);
  std::exit(2);
}

}  // namespace farside::processes
