// A table of a benchmark on a real fabric: a session of the library, as a program has it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "farside/session.h"
#include "farside/table.h"
#include "tools/bench/table.h"

namespace farside::tools {

class SessionTable final : public BenchTable {
 public:
  SessionTable(Session session, Table table) : session_(std::move(session)), table_(std::move(table)) {}

  Task<bool> Get(std::string_view key, std::string& value) override {
    return session_.Async().Get(table_, key, value);
  }
  Task<bool> Insert(std::string_view key, std::string_view value) override {
    return session_.Async().Insert(table_, key, value);
  }
  Task<Done> Put(std::string_view key, std::string_view value) override {
    return session_.Async().Put(table_, key, value);
  }
  Task<bool> Update(std::string_view key, std::string_view value) override {
    return session_.Async().Update(table_, key, value);
  }
  Task<bool> Scan(const KeyRange& range, size_t limit, std::vector<Record>& page) override {
    return session_.Async().Scan(table_, range, limit, page);
  }

  Status RunAll(std::span<Task<Done>> tasks) override { return session_.RunAll(tasks); }
  Nanos Now() const override { return clock_.Now(); }
  fabric::Counters& counters() override;
  Result<BenchSize> Measure() override;

  Session& session() { return session_; }

 private:
  Session session_;
  const Table table_;
  const SteadyClock clock_;
};

}  // namespace farside::tools
