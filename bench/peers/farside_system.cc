#include "bench/peers/farside_system.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "farside/farside.h"

namespace farside::peers {
namespace {

class FarsideConnection final : public Connection {
 public:
  FarsideConnection(Session session, Table table, size_t depth)
      : session_(std::move(session)), table_(std::move(table)), gets_(depth), puts_(depth) {}

  // One operation is what a program would write that has one; several are a batch.
  Status Run(Operation operation, const Batch& batch, const Manner&) override {
    const bool one = batch.size() == 1;
    if (operation == Operation::kGet) return one ? GetOne(batch) : GetMany(batch);
    return one ? session_.Put(table_, batch.key(0), batch.value(0)) : PutMany(batch);
  }

 private:
  Status GetOne(const Batch& batch) {
    const Result<bool> found = session_.Get(table_, batch.key(0), value_);
    if (!found.ok()) return found.error();
    return Verify(batch, 0, *found, value_);
  }

  Status GetMany(const Batch& batch) {
    const std::span<GetItem> items = std::span(gets_).first(batch.size());
    for (size_t i = 0; i < items.size(); ++i) items[i].key = batch.key(i);
    if (Status got = session_.MultiGet(table_, items); !got.ok()) return got;
    for (size_t i = 0; i < items.size(); ++i) {
      if (Status right = Verify(batch, i, *items[i].found, items[i].value); !right.ok()) return right;
    }
    return OkStatus();
  }

  Status PutMany(const Batch& batch) {
    const std::span<PutItem> items = std::span(puts_).first(batch.size());
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].key = batch.key(i);
      items[i].value = batch.value(i);
    }
    return session_.MultiPut(table_, items);
  }

  static Status Verify(const Batch& batch, size_t i, bool found, std::string_view value) {
    if (!found) return WrongAnswer(batch.key(i), "that it is absent");
    if (!batch.IsRight(i, value)) return WrongAnswer(batch.key(i), "not what was written");
    return OkStatus();
  }

  Session session_;
  const Table table_;
  std::vector<GetItem> gets_;
  std::vector<PutItem> puts_;
  std::string value_;
};

class FarsideSystem final : public System {
 public:
  FarsideSystem(FarsideOptions options, Pool pool, Table table)
      : options_(std::move(options)), pool_(std::move(pool)), table_(std::move(table)) {}

  const std::string& name() const override { return options_.name; }
  bool is_farside() const override { return true; }
  bool remembers() const override { return options_.cached_locations > 0; }
  Result<std::string> Version() override { return std::string(); }
  std::optional<pid_t> daemon() const override { return options_.daemon; }

  std::vector<Manner> Manners(Operation) const override { return {Manner{}}; }

  Result<std::unique_ptr<Connection>> Connect(size_t depth, size_t) override {
    Result<Session> session = pool_.NewSession();
    if (!session.ok()) return session.error();
    return std::unique_ptr<Connection>(
        std::make_unique<FarsideConnection>(std::move(*session), table_, depth));
  }

 private:
  const FarsideOptions options_;
  Pool pool_;
  const Table table_;
};

}  // namespace

Result<std::unique_ptr<System>> MakeFarside(FarsideOptions options) {
  PoolOptions pool_options;
  pool_options.client_slots = options.sessions + 2;  // the pool itself takes one
  Result<Pool> pool = Pool::Open(options.url, pool_options);
  if (!pool.ok()) return pool.error();
  TableOptions table_options{.engine = options.engine};
  // Shard has a cache over TCP unless it is told otherwise.
  if (options.cached_locations > 0 || options.engine == "shard")
    table_options.options.emplace("cache", std::to_string(options.cached_locations));
  Result<Table> table = pool->CreateTable(options.table, table_options);
  if (!table.ok()) return table.error();
  return std::unique_ptr<System>(
      std::make_unique<FarsideSystem>(std::move(options), std::move(*pool), std::move(*table)));
}

}  // namespace farside::peers
