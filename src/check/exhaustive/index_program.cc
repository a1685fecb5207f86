#include "check/exhaustive/index_program.h"

#include <memory>
#include <utility>

#include "check/perform.h"
#include "fabric/op.h"
#include "pool/region/superblock.h"
#include "store/registration.h"

namespace farside::check {
namespace {

using fabric::Op;
using fabric::OpKind;

Task<Outcome> PerformAsOperation(fabric::Client& client, index::Index& index, Call call) {
  Op op(client, OpKind::kSearch);
  co_return co_await Perform(index, op, call);
}

// All tables are of the engine that is explored.
index::FindEngine Only(index::Engine& engine) {
  return [&engine](std::string_view, const index::OptionMap&) -> Result<std::shared_ptr<index::Engine>> {
    return std::shared_ptr<index::Engine>(std::shared_ptr<void>(), &engine);
  };
}

constexpr std::string_view kTable = "t";

Task<Done> PerformAll(Actor& self, index::Engine& engine, pool::ClientOptions pool_options,
                      std::vector<Call> calls, CallsOptions options) {
  Op op(self.client(), OpKind::kMaintenance);
  const std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, self.client(), Only(engine), pool_options);
  const index::OpenTable table = co_await session->tables().Open(op, std::string(kTable));
  for (const Call& call : calls) {
    Result<Done> done =
        co_await Recorded(self, call, PerformAsOperation(self.client(), *table.index, call)).Outcome();
    if (!done.ok() && options.must_succeed) co_return done.error();
  }
  co_return Done{};
}

Task<Done> FormatTable(Actor& self, index::Engine& engine, pool::ClientOptions pool_options) {
  std::vector<std::byte> image(self.client().region_bytes()[0] + pool::kLine);
  void* start = image.data();
  size_t space = image.size();
  std::align(pool::kLine, image.size() - pool::kLine, start, space);
  const std::span<std::byte> region(static_cast<std::byte*>(start), image.size() - pool::kLine);
  const Result<pool::Geometry> geometry = pool::FormatVolatile(region, kExploredFormat, {1, 2});
  if (!geometry.ok()) co_return geometry.error();
  Op op(self.client(), OpKind::kMaintenance);
  co_await op.InOrder(fabric::Write(fabric::FarAddr(fabric::NodeId{0}, 0), region));
  const std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, self.client(), Only(engine), pool_options);
  co_await session->tables().CreateOrOpen(op, std::string(kTable), std::string(engine.name()), {});
  co_await session->Leave(op);
  co_return Done{};
}

Task<Done> VerifyTable(Actor& self, index::Engine& engine, pool::ClientOptions pool_options) {
  Op op(self.client(), OpKind::kMaintenance);
  const std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, self.client(), Only(engine), pool_options);
  const index::OpenTable table = co_await session->tables().Open(op, std::string(kTable));
  co_return co_await table.index->Verify(op);
}

}  // namespace

Program Format(index::Engine& engine, pool::ClientOptions options) {
  return [&engine, options](Actor& self) { return FormatTable(self, engine, options); };
}

Program Calls(index::Engine& engine, pool::ClientOptions pool_options, std::vector<Call> calls,
              CallsOptions options) {
  return [&engine, pool_options, calls = std::move(calls), options](Actor& self) {
    return PerformAll(self, engine, pool_options, calls, options);
  };
}

Program Verify(index::Engine& engine, pool::ClientOptions options) {
  return [&engine, options](Actor& self) { return VerifyTable(self, engine, options); };
}

}  // namespace farside::check
