#include "tests/damage/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "check/workload.h"
#include "index/continuity/slot.h"
#include "pool/fsck/fsck.h"
#include "pool/region/superblock.h"

namespace farside::damage {

using fabric::Op;
using fabric::OpKind;

namespace {

constexpr int kKeys = 160;
constexpr size_t kMostRecords = 4096;

// Text, so that a damage can tell it from what means something; most of a few lines, some of many.
std::string ValueOf(int key, int version) {
  const size_t bytes = key % 41 == 0 ? 4500 : static_cast<size_t>(key % 7) * 40;
  std::string value = fmt::format("{} of key {}", version, key);
  value.resize(std::max(value.size(), bytes), 'v');
  return value;
}

}  // namespace

void CommandClient::Wrong(std::string_view what, std::string_view why) {
  findings_.wrong.push_back(fmt::format("{} {}", what, why));
}

std::string CommandClient::Fit(std::string text) const {
  const std::optional<size_t> size = engine_->traits().fixed_size;
  if (size.has_value()) text.resize(std::min(text.size(), *size));
  return check::Fitted(std::move(text), size);
}

// Records of fixed size stand in the index. So do records of continuity that fit a slot; others have blocks.
bool CommandClient::HasChecksum(const Record& record) const {
  const index::Traits traits = engine_->traits();
  if (traits.fixed_size.has_value()) return false;
  return !traits.durable || !index::continuity::FitsSlot(record.key.size(), record.value.size());
}

void CommandClient::CheckValue(const Content& content, std::string_view what, const Record& record) {
  const bool must_be_right = damaged_ == Damaged::kBlocks || HasChecksum(record);
  if (must_be_right && !content.Has(record.key, record.value))
    Wrong(what, fmt::format("returned a value that key '{}' never had", record.key));
}

// ---- the commands ------------------------------------------------------------------------------------

bool CommandClient::Open() {
  const index::FindEngine find = [engine = engine_](std::string_view, const index::OptionMap&) {
    return Result<std::shared_ptr<index::Engine>>(engine);
  };
  return Run("open", Join(find, kLease, std::string(engine_->name()), {})).has_value();
}

void CommandClient::LeavePool() { Run("leave", Leave()); }

void CommandClient::Fill(Content& content) { Run("fill", PutAll(content)); }

void CommandClient::Look(const Content& content) {
  for (size_t i = 0; i < content.keys.size(); i += 9) {
    const auto value = Run("get", Get(content.keys[i]));
    if (value.has_value() && value->has_value())
      CheckValue(content, "get", {.key = content.keys[i], .value = **value});
  }
  Run("get of an absent key", Get(Fit("absent")));
  const auto check_all = [&](std::string_view what, const std::optional<std::vector<Record>>& records) {
    if (!records.has_value()) return;
    for (const Record& record : *records) CheckValue(content, what, record);
  };
  if (table_->index->searches_together()) {
    const std::vector<std::string> some(content.keys.begin(),
                                        content.keys.begin() + static_cast<ptrdiff_t>(index::kMostTogether));
    check_all("get together", Run("get together", GetTogether(some)));
  }
  check_all("list", Run("list", List()));
  if (engine_->traits().ordered) {
    check_all("scan", Run("scan", Scan(KeyRange::All(), kMostRecords)));
    const std::optional<Record> last = Run("last", Last());
    if (last.has_value() && !last->key.empty()) CheckValue(content, "last", *last);
  }
  Run("stats", Stats());
}

void CommandClient::Change(Content& content) {
  for (size_t i = 4; i < content.keys.size(); i += 13) {
    const std::string& key = content.keys[i];
    const std::string value = Fit(ValueOf(static_cast<int>(i), 9));
    content.values[key].insert(value);
    Run("put", Put(key, value));
  }
  for (int i = 0; i < 12; ++i) {
    const std::string key = Fit(fmt::format("n{:02}", i));
    const std::string value = Fit(ValueOf(i, 8));
    content.values[key].insert(value);
    Run("insert", Insert(key, value));
  }
  for (size_t i = 7; i < content.keys.size(); i += 13) Run("delete", Delete(content.keys[i]));
  Run("maintain", Maintain());
}

void CommandClient::Check() {
  Run("verify", Verify());
  Run("fsck", Fsck());
}

void CommandClient::DropTable() {
  table_.reset();
  Run("drop", Drop());
}

// ---- their tasks -------------------------------------------------------------------------------------

// Some keys are put twice and some deleted, so that there is memory which was used and is free.
Task<Done> CommandClient::PutAll(Content& content) {
  for (int version = 0; version < 2; ++version) {
    for (int i = version; i < kKeys; i += 1 + 2 * version) {
      const std::string key = Fit(fmt::format("k{:04}", i * 37 % 1000));
      const std::string value = Fit(ValueOf(i, version));
      if (version == 0) content.keys.push_back(key);
      content.values[key].insert(value);
      co_await PutIfThereIsRoom(key, value);
    }
  }
  for (size_t i = 0; i < content.keys.size(); i += 11) co_await Delete(content.keys[i]);
  co_return Done{};
}

// Tables of tests are small.
Task<Done> CommandClient::PutIfThereIsRoom(std::string key, std::string value) {
  while (true) {
    const Result<index::PutOutcome> put = co_await Put(key, value).Outcome();
    if (put.ok() || put.error().code() == ErrorCode::kOutOfMemory) co_return Done{};
    if (put.error().code() != ErrorCode::kContended) co_return put.error();
  }
}

Task<std::optional<std::string>> CommandClient::Get(std::string key) {
  Op op(*client_, OpKind::kSearch);
  std::string value;
  const bool found = co_await table_->index->Get(op, key, value);
  co_return found ? std::optional<std::string>(value) : std::nullopt;
}

Task<std::vector<Record>> CommandClient::GetTogether(std::vector<std::string> keys) {
  Op op(*client_, OpKind::kSearch);
  std::array<std::string, index::kMostTogether> values;
  std::array<index::Search, index::kMostTogether> searches;
  for (size_t i = 0; i < keys.size(); ++i) {
    searches[i].key = keys[i];
    searches[i].value = &values[i];
  }
  co_await table_->index->SearchTogether(op, std::span(searches).first(keys.size()));
  std::vector<Record> found;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (searches[i].outcome == index::Search::Outcome::kFound)
      found.push_back({.key = keys[i], .value = values[i]});
  }
  co_return found;
}

Task<std::vector<Record>> CommandClient::List() {
  Op op(*client_, OpKind::kScan);
  std::vector<Record> all;
  index::Cursor cursor;
  while (all.size() < kMostRecords) {
    std::vector<Record> page;
    const bool more = co_await table_->index->Next(op, cursor, page);
    if (!more) break;
    all.insert(all.end(), page.begin(), page.end());
  }
  co_return all;
}

Task<Record> CommandClient::Last() {
  Op op(*client_, OpKind::kScan);
  Record record;
  const bool found = co_await table_->index->Last(op, KeyRange::All(), record);
  co_return found ? record : Record();
}

// As `farside fsck` does: a walk, and then a look at every byte, whatever came of the walk.
Task<Done> CommandClient::Fsck() {
  Op op(*client_, OpKind::kMaintenance);
  pool::Reached reached;
  reached.BeginTable(kTable);
  Result<Done> walked = Done{};
  {
    const pool::PoolClient::Pin pin = session_->pool().Begin();
    walked = co_await table_->index->Walk(op, reached).Outcome();
  }
  for (size_t node = 0; node < session_->pool().nodes(); ++node) {
    const auto id = static_cast<fabric::NodeId>(node);
    pool::FsckOptions options;
    options.all_walked = walked.ok();
    options.no_client_runs = true;
    const pool::Geometry geometry = session_->pool().member(id).geometry();
    co_await pool::Fsck(op, id, geometry, reached, options);
  }
  if (!walked.ok()) co_return walked.error();
  co_return Done{};
}

}  // namespace farside::damage
