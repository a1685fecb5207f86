// The results as a picture: throughput, a panel for each operation and number of clients, in it a group for each
// depth, in it a mark for each system. SVG, on a transparent ground and in colours that are told apart on light and on dark pages.
#pragma once

#include <string>

#include "bench/peers/results.h"

namespace farside::peers {

// Always a well-formed document, also without results.
std::string Chart(const Results& results);

}  // namespace farside::peers
