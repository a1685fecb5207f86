// The JSON that `--json` prints: one object, and a newline. Fields may be added, never renamed.
#pragma once

#include <string>

#include "tools/check_report.h"
#include "tools/doctor.h"

namespace farside::tools {

std::string ToJson(const CheckCommand& command, const CheckResult& result);
std::string ToJson(const DoctorReport& report);

}  // namespace farside::tools
