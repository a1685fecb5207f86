// Scans in histories: the rule by which they are judged.
//
// A scan of a range [from, to) with a limit, and Last of a range, are no operations on one key, and no
// snapshots. What they promise (index/index.h) is this:
//
// 1. By itself, an answer is a scan's: its keys ascend strictly and lie in the range, there are at most
//    `limit`, and there are exactly that many if it says that there may be more. (Otherwise a scan that never
//    returns anything would be right.) The answer of Last has one record at most, in the range.
//
// 2. An answer *covers* a part of the range. A scan covers the keys from `from` up to the last one it
//    returned, or up to `to` if it said that there are no more. Last covers the keys from the one it returned
//    up to `to`, or the whole range if it found nothing.
//
// 3. For each key that is covered, the scan is one read of that key: the value that it returned with it, or
//    absence. The read happens at one moment between the scan's call and its return, and not all reads of a
//    scan need have the same moment.
//
// So a scan is taken apart into reads (Kind::kSeen), one for each covered key that occurs anywhere in the
// history, and the history of each key is checked as ever. Keys that never occur are absent all the time, as
// the scan says too. A scan without an answer, or one that was refused, says nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/history.h"
#include "check/linearizability.h"

namespace farside::check {

bool HasScans(std::span<const Operation> operations);

// The first scan, in order of return, whose answer breaks rule 1; and why, in a few words.
struct MalformedScan {
  const Operation* scan;
  std::string why;
};
std::optional<MalformedScan> FindMalformedScan(std::span<const Operation> operations);

// The operations without scans, but with what those say about each key: rules 2 and 3. The scans must be
// well-formed.
std::vector<Operation> TakeScansApart(std::span<const Operation> operations, const CheckOptions& options);

}  // namespace farside::check
