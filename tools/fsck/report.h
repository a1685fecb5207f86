// What `farside fsck` says. Functions of data: they check nothing and print nothing.
#pragma once

#include <string>
#include <string_view>

#include "fabric/address.h"
#include "pool/fsck/fsck.h"
#include "pool/region/url.h"
#include "tools/common/terminal.h"
#include "tools/fsck/fsck.h"

namespace farside::tools {

// "note", "leak", "damage".
std::string_view Name(pool::Severity severity);

// "n0+0x1000", as in traces.
std::string AddressText(fabric::FarAddr at);

// Findings, one line each, the worst first; the tables; a table of where the bytes are; the verdict.
std::string FsckText(const pool::PoolUrl& url, const PoolReport& report, const Paint& paint);

}  // namespace farside::tools
