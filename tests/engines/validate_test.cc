// A table is dropped while an operation on it looks whether it is still there.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/run.h"
#include "index/reference/reference.h"
#include "index/tables.h"
#include "pool/catalog/catalog.h"
#include "pool/region/open.h"
#include "store/registration.h"
#include "tests/support/wrapped_fabric.h"

namespace farside::index {
namespace {

using fabric::Op;
using fabric::OpKind;

// After the next trip of the client, and before its answer, something else happens.
class ClientWithLateAnswer final : public WrappedClient {
 public:
  using WrappedClient::Start;
  using WrappedClient::WrappedClient;
  bool Start(fabric::Trip& trip) override {
    const bool ended = WrappedClient::Start(trip);
    const std::function<void()> then = std::exchange(before_answer, {});
    if (then) then();
    return ended;
  }
  std::function<void()> before_answer;
};

Task<Done> Nothing() { co_return Done{}; }

struct User {
  template <class Start>
  auto Run(Start start) {
    Op op(client, OpKind::kMaintenance);
    return fabric::Run(client, start(op));
  }

  explicit User(pool::OpenedPool& pool) : client(std::move(*pool.fabric->Connect())) {
    const FindEngine find = [](std::string_view, const OptionMap& options) {
      return reference::MakeReferenceEngine(options);
    };
    session = std::move(*Run([&](Op& op) { return store::Registration::Join(op, client, find, {}); }));
  }
  Result<OpenTable> CreateOrOpen(std::string name) {
    return Run([&](Op& op) { return session->tables().CreateOrOpen(op, std::move(name), "reference", {}); });
  }

  ClientWithLateAnswer client;
  std::unique_ptr<store::Registration> session;
};

TEST(Validate, TheTableIsDroppedBeforeTheAnswer_AndASyncLearnsOfIt) {
  // Given a table that a client has open, and a catalog that has changed since.
  const std::unique_ptr<pool::OpenedPool> opened = std::move(*pool::OpenPool("embedded:?size=4MiB", {}));
  User reader(*opened);
  User dropper(*opened);
  Result<OpenTable> table = reader.CreateOrOpen("t");
  ASSERT_TRUE(table.ok()) << table.error().ToString();
  ASSERT_TRUE(dropper.CreateOrOpen("other").ok());
  const auto sync = [&] {
    return reader.Run([&](Op& op) { return reader.session->pool().Sync(op, /*raise=*/true); });
  };
  ASSERT_TRUE(sync().ok());
  // When the client looks whether the table is there, and before the answer comes the table is dropped, and
  // another task of the client syncs: operations begin with an epoch for which the drop does not wait.
  bool synced = false;
  const pool::Catalog::WaitForGrace wait = [&](Op&) {
    synced = sync().ok();
    return Nothing();
  };
  const pool::Catalog::FreeTable keep = [](Op&, const pool::TableInfo&) { return Nothing(); };
  reader.client.before_answer = [&] {
    pool::Catalog catalog(dropper.session->pool().member(fabric::NodeId{0}));
    const Result<Done> dropped = dropper.Run([&](Op& op) { return catalog.Drop(op, "t", wait, keep); });
    EXPECT_TRUE(dropped.ok()) << dropped.error().ToString();
  };
  const Result<Done> valid =
      reader.Run([&](Op& op) { return reader.session->tables().Validate(op, *table); });
  // Expect that the operation does not begin.
  EXPECT_TRUE(synced);
  ASSERT_FALSE(valid.ok()) << "the table is gone";
  EXPECT_EQ(valid.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace farside::index
