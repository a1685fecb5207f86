#include "tools/fsck/report.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/size.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace farside::tools {
namespace {

using pool::Finding;
using pool::FsckReport;
using pool::Severity;

// What a person reads; --json has more.
constexpr size_t kMostLines = 50;

std::string Painted(Severity severity, const Paint& paint) {
  const std::string padded = fmt::format("{:<8}", Name(severity));
  switch (severity) {
    case Severity::kNote: return paint.Bold(padded);
    case Severity::kLeak: return paint.Yellow(padded);
    case Severity::kDamage: return paint.Red(padded);
  }
  return padded;
}

std::string FindingsText(const PoolReport& report, const Paint& paint) {
  std::vector<const Finding*> findings;
  for (const FsckReport& node : report.nodes) {
    for (const Finding& finding : node.findings) findings.push_back(&finding);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding* a, const Finding* b) { return a->severity > b->severity; });
  std::string text;
  for (size_t i = 0; i < std::min(findings.size(), kMostLines); ++i) {
    const Finding& finding = *findings[i];
    text += fmt::format("{}{:<12}{} -> {}\n", Painted(finding.severity, paint), AddressText(finding.where),
                        Harmless(finding.what), Harmless(finding.advice));
  }
  const uint64_t all = report.notes() + report.leaks() + report.damages();
  if (all > kMostLines) {
    text += fmt::format("... and {} more; --json has up to {} of each node\n", Grouped(all - kMostLines),
                        Grouped(FsckReport::kMostFindings));
  }
  return text.empty() ? text : text + "\n";
}

std::string TablesText(const PoolReport& report) {
  if (report.tables.empty()) return "tables        none\n";
  std::string text;
  for (const CheckedTable& table : report.tables) {
    text += fmt::format(
        "{:<14}{} ({}), {}\n", text.empty() ? "tables" : "", Readable(table.name), Readable(table.engine),
        table.size.has_value()
            ? fmt::format("{} keys, {} bytes", Grouped(table.size->keys), Grouped(table.size->bytes))
            : "not walked to its end");
  }
  return text;
}

struct Row {
  std::string_view name;
  uint64_t bytes;
  bool always;  // shown also if there are none
};

std::string BytesText(const pool::FsckBytes& bytes) {
  const uint64_t total = std::max<uint64_t>(1, bytes.Total());
  const std::array rows = {
      Row{"reachable", bytes.reachable, true}, Row{"free", bytes.free_chunks + bytes.free_blocks, true},
      Row{"overhead", bytes.overhead, true},   Row{"metadata", bytes.metadata, true},
      Row{"held", bytes.held, false},          Row{"abandoned", bytes.abandoned, false},
      Row{"leaked", bytes.leaked, true},       Row{"not known", bytes.unknown, false},
      Row{"damaged", bytes.damaged, true},     Row{"all", bytes.Total(), true},
  };
  std::string text;
  for (const Row& row : rows) {
    if (row.bytes == 0 && !row.always) continue;
    text += fmt::format("{:<14}{:>16}  {:5.1f} %\n", row.name, Grouped(row.bytes),
                        100.0 * static_cast<double>(row.bytes) / static_cast<double>(total));
  }
  return text;
}

std::string Count(uint64_t number, std::string_view what) {
  return fmt::format("{} {}{}", Grouped(number), what, number == 1 ? "" : "s");
}

std::string SummaryText(const PoolReport& report, const Paint& paint) {
  if (report.ok()) return paint.Green("clean") + ": every byte is accounted for\n";
  const std::string counts =
      fmt::format("{}, {}", Count(report.damages(), "damage"), Count(report.leaks(), "leak"));
  std::string text = paint.Red("NOT CLEAN") + ": " + counts;
  if (!report.complete) {
    text += "; not every table could be walked, so what is leaked cannot be told";
  }
  return text + "\n";
}

std::string PoolText(const pool::PoolUrl& url, uint64_t bytes) {
  using Kind = pool::PoolUrl::Kind;
  if (url.kind == Kind::kEmbedded)
    return "made for this check and empty: an embedded pool lives only as long as its process";
  const std::string size = FormatSize(bytes);
  if (url.in_file()) return fmt::format("{}, {}", Escape(url.path), size);
  const std::string names = Escape(fmt::format("{}", fmt::join(url.names, ",")));
  const std::string nodes = url.names.size() == 1 ? "" : fmt::format(" on {} nodes", url.names.size());
  return fmt::format("{}{}, {}{}", url.kind == Kind::kTcp ? "tcp://" : "shm:", names, size, nodes);
}

}  // namespace

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kNote: return "note";
    case Severity::kLeak: return "leak";
    case Severity::kDamage: return "damage";
  }
  return "?";
}

std::string AddressText(fabric::FarAddr at) { return fmt::format("n{}+{:#x}", Index(at.node), at.offset); }

std::string FsckText(const pool::PoolUrl& url, const PoolReport& report, const Paint& paint) {
  return FindingsText(report, paint) +
         fmt::format("pool          {}\n", PoolText(url, report.bytes().Total())) + TablesText(report) +
         "\n" + BytesText(report.bytes()) + "\n" + SummaryText(report, paint);
}

}  // namespace farside::tools
