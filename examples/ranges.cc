// A table that keeps its keys in order: ranges, pages, the first and the last key.
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <farside/farside.h>

using farside::KeyRange;
using farside::OkStatus;
using farside::Pool;
using farside::RangeCursor;
using farside::Record;
using farside::Result;
using farside::Session;
using farside::Status;
using farside::Table;

namespace {

Status PrintStops(Session& session, const Table& table, const std::string& line) {
  RangeCursor cursor{.rest = KeyRange::Prefix(line + '/'), .page_records = 2};
  std::vector<Record> page;  // its memory is used again
  while (true) {
    const Result<bool> more = session.Next(table, cursor, page);
    if (!more.ok()) return more.error();
    if (!*more) return OkStatus();
    for (const Record& record : page) std::cout << "  " << record.key << "  " << record.value << '\n';
  }
}

Status Ranges() {
  Result<Pool> pool = Pool::Open("embedded:?size=16MiB");
  if (!pool.ok()) return pool.error();
  Result<Table> departures = pool->CreateTable("departures", {.engine = "chime"});
  if (!departures.ok()) return departures.error();
  Result<Session> opened = pool->NewSession();
  if (!opened.ok()) return opened.error();
  Session& session = *opened;

  for (const auto& [key, stop] :
       {std::pair("S7/09:40", "Harbour"), std::pair("S1/08:05", "Castle"), std::pair("S7/08:20", "Market"),
        std::pair("S7/08:55", "Mill"), std::pair("U2/07:30", "Park")}) {
    if (Status put = session.Put(*departures, key, stop); !put.ok()) return put;
  }

  std::cout << "line S7, in the order of time:\n";
  if (Status printed = PrintStops(session, *departures, "S7"); !printed.ok()) return printed;

  // The next two from half past eight on.
  const Result<std::vector<Record>> next =
      session.Scan(*departures, KeyRange::Between("S7/08:30", "S7/24:00"), 2);
  if (!next.ok()) return next.error();
  for (const Record& record : *next) std::cout << "next: " << record.value << '\n';

  const Result<std::optional<Record>> last = session.Last(*departures, KeyRange::Prefix("S7/"));
  if (!last.ok()) return last.error();
  if (last->has_value()) std::cout << "the last S7 is " << (*last)->key << '\n';

  if (Status closed = session.Close(); !closed.ok()) return closed;
  return pool->Close();
}

}  // namespace

int main() {
  const Status done = Ranges();
  if (done.ok()) return 0;
  std::cerr << "ranges: " << done.error() << '\n';
  return 1;
}
