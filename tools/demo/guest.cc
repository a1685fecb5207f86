#include "tools/demo/guest.h"

#include <utility>

#include "fabric/op.h"
#include "store/engines.h"

namespace farside::tools::demo {

using fabric::Op;
using fabric::OpKind;

Task<Done> Settle(Guest& guest, std::string engine, pool::ClientOptions options) {
  Op op(*guest.client, OpKind::kMaintenance);
  guest.registration = co_await store::Registration::Join(op, *guest.client, store::MakeEngine, options);
  index::OpenTable table = co_await guest.registration->tables().CreateOrOpen(op, "demo", std::move(engine), {});
  guest.table = std::make_unique<index::OpenTable>(std::move(table));
  co_return Done{};
}

Task<Done> Leave(Guest& guest) {
  Op op(*guest.client, OpKind::kMaintenance);
  co_await guest.registration->Leave(op);
  co_return Done{};
}

}  // namespace farside::tools::demo
