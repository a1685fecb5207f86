// A table, a few records, a walk through all of them.
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <farside/farside.h>

using farside::Cursor;
using farside::OkStatus;
using farside::Pool;
using farside::Record;
using farside::Result;
using farside::Session;
using farside::Status;
using farside::Table;

namespace {

Status PrintAll(Session& session, const Table& table) {
  Cursor cursor;
  std::vector<Record> page;
  while (true) {
    const Result<bool> more = session.Next(table, cursor, page);
    if (!more.ok()) return more.error();
    if (!*more) return OkStatus();
    for (const Record& record : page) std::cout << "  " << record.key << " -> " << record.value << '\n';
  }
}

Status Hello() {
  // A pool in the memory of this process; "file:hello.farside?size=16MiB" would keep it.
  Result<Pool> pool = Pool::Open("embedded:?size=16MiB");
  if (!pool.ok()) return pool.error();
  Result<Table> capitals = pool->CreateTable("capitals");
  if (!capitals.ok()) return capitals.error();
  Result<Session> session = pool->NewSession();
  if (!session.ok()) return session.error();

  for (const auto& [country, city] :
       {std::pair("France", "Paris"), std::pair("Japan", "Kyoto"), std::pair("Peru", "Lima")}) {
    if (Status put = session->Put(*capitals, country, city); !put.ok()) return put;
  }
  if (Status put = session->Put(*capitals, "Japan", "Tokyo"); !put.ok()) return put;  // replaces

  const Result<std::optional<std::string>> japan = session->Get(*capitals, "Japan");
  if (!japan.ok()) return japan.error();
  std::cout << "The capital of Japan is " << japan->value_or("unknown") << ".\n";

  const Result<bool> deleted = session->Delete(*capitals, "Peru");
  if (!deleted.ok()) return deleted.error();
  const Result<std::optional<std::string>> peru = session->Get(*capitals, "Peru");
  if (!peru.ok()) return peru.error();
  std::cout << "Peru is " << (peru->has_value() ? "there" : "gone") << ". What is left:\n";
  if (Status printed = PrintAll(*session, *capitals); !printed.ok()) return printed;

  // Both would happen at the end of the scope too, but then errors would be ignored.
  if (Status closed = session->Close(); !closed.ok()) return closed;
  return pool->Close();
}

}  // namespace

int main() {
  const Status done = Hello();
  if (done.ok()) return 0;
  std::cerr << "hello: " << done.error() << '\n';
  return 1;
}
