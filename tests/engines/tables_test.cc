// The tables of a pool by name: which engine and which options a client gets.
#include "index/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"
#include "pool/region/superblock.h"
#include "store/registration.h"

namespace farside::index {
namespace {

using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using testing::HasSubstr;

class TablesTest : public testing::Test {
 protected:
  template <class Start>
  auto Run(Start start) {
    Op op(*client_, OpKind::kMaintenance);
    return fabric::Run(*client_, start(op));
  }

  TablesTest() : world_({.region_bytes = {512 * 1024, 512 * 1024}, .chaos = fabric::sim::Chaos::Calm()}) {
    for (const NodeId node : {NodeId{0}, NodeId{1}}) {
      EXPECT_TRUE(
          pool::FormatVolatile(world_.memory(node), {.chunk_bytes = 4096}, {1, fabric::Index(node)}).ok());
    }
    client_ = std::move(*world_.Connect());
    const FindEngine find = [this](std::string_view, const OptionMap& options) {
      asked_.push_back(options);
      return reference::MakeReferenceEngine(options);
    };
    session_ = std::move(*Run([&](Op& op) { return store::Registration::Join(op, *client_, find, {}); }));
  }

  Result<OpenTable> CreateOrOpen(OptionMap options) {
    return Run([&](Op& op) { return tables().CreateOrOpen(op, "t", "reference", std::move(options)); });
  }
  Result<OpenTable> Open() {
    return Run([&](Op& op) { return tables().Open(op, "t"); });
  }
  Tables& tables() { return session_->tables(); }

  fabric::sim::SimFabric world_;
  std::unique_ptr<fabric::Client> client_;
  std::vector<OptionMap> asked_;  // for engines, in this order
  std::unique_ptr<store::Registration> session_;
};

TEST_F(TablesTest, OptionsThatChangeNoBytes_CountForTheirClient_AndAreNotRecorded) {
  // Given a table that was made with an option that changes bytes, and one that does not.
  const OptionMap given = {{"buckets", "2"}, {"backoff_us", "7"}};
  const Result<OpenTable> made = CreateOrOpen(given);
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  // Expect that one engine was asked for, with both, and made the table and opens it.
  EXPECT_TRUE(made->created);
  EXPECT_EQ(made->info.options, "buckets=2");
  EXPECT_EQ(asked_, std::vector<OptionMap>({given}));

  // When it is opened by name. Expect what was recorded.
  EXPECT_TRUE(Open().ok());
  EXPECT_EQ(asked_.back(), (OptionMap{{"buckets", "2"}}));

  // When it is made again with another option that changes no bytes. Expect that it is opened so.
  const OptionMap other = {{"buckets", "2"}, {"backoff_us", "9"}};
  const Result<OpenTable> again = CreateOrOpen(other);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_FALSE(again->created);
  EXPECT_EQ(asked_.back(), other);
}

TEST_F(TablesTest, OptionsThatChangeBytes_MustBeThoseOfTheTable) {
  ASSERT_TRUE(CreateOrOpen({{"buckets", "2"}}).ok());
  const Result<OpenTable> other = CreateOrOpen({{"buckets", "3"}});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), ErrorCode::kAlreadyExists);
  EXPECT_THAT(other.error().message(), HasSubstr("options 'buckets=2'"));
}

TEST_F(TablesTest, TwoNodes_KeysLiveOnBoth_AndADropFreesThem) {
  // Given a table over two nodes, with keys.
  Result<OpenTable> table = CreateOrOpen({});
  ASSERT_TRUE(table.ok()) << table.error().ToString();
  ASSERT_EQ(table->info.roots.size(), 2u);
  for (int i = 0; i < 40; ++i) {
    const std::string key = std::to_string(i);
    ASSERT_TRUE(Run([&](Op& op) { return table->index->Put(op, key, "value"); }).ok());
  }
  for (const NodeId node : {NodeId{0}, NodeId{1}}) {
    EXPECT_GT(session_->pool().allocator(node).stats().bytes_handed_out, 0u);
  }
  // When it is dropped.
  ASSERT_TRUE(Run([&](Op& op) { return tables().Drop(op, "t"); }).ok());
  // Expect that a client that has it open is told, and that nothing is left of it.
  EXPECT_EQ(Run([&](Op& op) { return tables().Validate(op, *table); }).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Open().error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(Run([&](Op& op) { return session_->Leave(op); }).ok());
  for (const NodeId node : {NodeId{0}, NodeId{1}}) {
    EXPECT_EQ(session_->pool().allocator(node).stats().bytes_owned, 0u);
  }
}

TEST(TableOptions, AsTextAndBack) {
  const OptionMap options = {{"buckets", "64"}, {"width", "2"}};
  EXPECT_EQ(ToText(options), "buckets=64 width=2");
  EXPECT_EQ(*ParseOptions("buckets=64 width=2"), options);
  EXPECT_EQ(ParseOptions("")->size(), 0u);
  for (const std::string_view damaged : {"buckets", "=2", "a=1 b", " a=1"}) {
    EXPECT_EQ(ParseOptions(damaged).error().code(), ErrorCode::kCorrupt) << damaged;
  }
}

}  // namespace
}  // namespace farside::index
