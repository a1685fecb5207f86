// The results as text for people and as JSON for programs. Functions of data: they measure nothing and print
// nothing.
#pragma once

#include <string>
#include <string_view>

#include "bench/peers/results.h"

namespace farside::peers {

// 1234567 as "1.23 M", 45600 as "45.6 k".
std::string ShortNumber(double number);

// The machine and the versions, then a table for each operation and number of clients.
std::string ReportText(const Results& results);

// One object on one line, with every round.
std::string ReportJson(const Results& results);

}  // namespace farside::peers
