// The results as a picture: throughput, a panel for each operation and number of clients, in it a line for
// each system over the depths, with its name at its end. Farside has one hue, all others are grey. SVG on a
// transparent ground; its inks follow light and dark pages.
#pragma once

#include <string>

#include "bench/peers/results.h"

namespace farside::peers {

// Always a well-formed document, also without results.
std::string Chart(const Results& results);

}  // namespace farside::peers
