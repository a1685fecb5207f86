// The JSON that `--json` prints: one object, and a newline. Fields may be added, never renamed.
#pragma once

#include <string>

#include "tools/bench/report.h"
#include "tools/check/report.h"
#include "tools/doctor/doctor.h"
#include "tools/fsck/fsck.h"
#include "tools/paper/paper.h"
#include "tools/status/status.h"
#include "tools/table/report.h"

namespace farside::tools {

std::string ToJson(const BenchPlan& plan, const BenchResult& result);
std::string ToJson(const CheckCommand& command, const CheckResult& result);
std::string ToJson(const DoctorReport& report);
std::string ToJson(const FsckCommand& command, const PoolReport& report);
std::string ToJson(const PaperCommand& command, const paper::Experiment& experiment,
                   const paper::Report& report);
std::string PaperNamesJson();
std::string ToJson(const StatusCommand& command, const PoolStatus& status);
std::string ToJson(const TableList& list);
std::string ToJson(const ShownTable& table);
std::string ToJson(const MadeTable& table);
std::string ToJson(const DroppedTable& table);

}  // namespace farside::tools
