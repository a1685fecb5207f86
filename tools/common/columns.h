// Text in columns, for tables that people read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace farside::tools {

// One line for each row, the first of which has the titles. `alignment` has 'l' or 'r' for each column.
std::string Columns(const std::vector<std::vector<std::string>>& rows, std::string_view alignment);

}  // namespace farside::tools
