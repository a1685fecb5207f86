// A table of an ordered engine on one of the backends, as an engine sees it: without a store in between.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/op.h"
#include "fabric/run.h"
#include "farside/range.h"
#include "farside/record.h"
#include "index/tables.h"
#include "store/registration.h"
#include "tests/engines/conformance/engine.h"
#include "tests/fabric/conformance/backend.h"

namespace farside::conformance {

struct OrderedUnderTest {
  fabric::conformance::BackendUnderTest backend;
  EngineUnderTest engine;
};
inline std::ostream& operator<<(std::ostream& out, const OrderedUnderTest& test) {
  return out << test.engine.label << " on " << test.backend.name;
}
// Every ordered engine on every backend.
std::vector<OrderedUnderTest> OrderedOnAllBackends();
std::string OrderedLabel(const testing::TestParamInfo<OrderedUnderTest>& info);

// A client of the pool with the table open.
class OrderedClient {
 public:
  // Makes the table if it is not there.
  OrderedClient(std::unique_ptr<fabric::Client> client, const EngineUnderTest& engine);

  void Put(std::string_view key, std::string_view value);
  bool Delete(std::string_view key);
  // What Scan appended, and whether it said that there may be more.
  struct Page {
    std::vector<Record> records;
    bool more = false;
  };
  Page Scan(const KeyRange& range, size_t limit);
  std::optional<Record> Last(const KeyRange& range);

  fabric::Client& client() { return *client_; }
  store::Registration& session() { return *session_; }
  index::Index& index() { return *table_->index; }

 private:
  Task<Done> JoinWithTable(const EngineUnderTest& engine);

  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::optional<index::OpenTable> table_;
};

class OrderedTest : public testing::TestWithParam<OrderedUnderTest> {
 protected:
  // A pool of two nodes.
  explicit OrderedTest(uint64_t seed = 1);

  // Keys and values that the engine takes, in the order of their texts. Engines that take only one size have
  // the text with zeros behind it, so it must be as short as that, and not end with a zero.
  std::string K(std::string_view text) const { return Fitted(text); }
  std::string V(std::string_view text) const { return Fitted(text); }
  bool takes_any_size() const { return !GetParam().engine.traits.fixed_size.has_value(); }

  // Puts the record, and notes it in the model.
  void Put(const std::string& key, const std::string& value);
  void Delete(std::string key);  // by value: it may be the model's own
  // The records of the model in the range.
  std::vector<Record> Expected(const KeyRange& range) const;
  // Demands that a scan of the range, whatever its limit, agrees with the model; and Last too.
  void ExpectRange(const KeyRange& range);

  std::unique_ptr<OrderedClient> NewClient();

  std::unique_ptr<fabric::conformance::World> world_;
  std::unique_ptr<OrderedClient> table_;
  std::map<std::string, std::string, std::less<>> model_;

 private:
  std::string Fitted(std::string_view text) const;
};

}  // namespace farside::conformance
