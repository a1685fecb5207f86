#include "tools/demo/client.h"

#include <utility>

#include "fabric/op.h"
#include "store/engines.h"

namespace farside::tools::demo {

using fabric::Op;
using fabric::OpKind;

Task<Done> JoinWithTable(DemoClient& demo_client, std::string engine, pool::ClientOptions options) {
  Op op(*demo_client.client, OpKind::kMaintenance);
  demo_client.registration =
      co_await store::Registration::Join(op, *demo_client.client, store::MakeEngine, options);
  index::OpenTable table =
      co_await demo_client.registration->tables().CreateOrOpen(op, "demo", std::move(engine), {});
  demo_client.table = std::make_unique<index::OpenTable>(std::move(table));
  co_return Done{};
}

Task<Done> Leave(DemoClient& demo_client) {
  Op op(*demo_client.client, OpKind::kMaintenance);
  co_await demo_client.registration->Leave(op);
  co_return Done{};
}

}  // namespace farside::tools::demo
