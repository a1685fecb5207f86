#include "check/exhaustive/index_program.h"

#include <memory>
#include <utility>

#include "fabric/op.h"

namespace farside::check {
namespace {

using fabric::Op;
using fabric::OpKind;

Task<Outcome> Perform(fabric::Client& client, index::Index& index, Call call) {
  Op op(client, OpKind::kSearch);
  switch (call.kind) {
    case Kind::kGet: {
      std::string value;
      const bool found = co_await index.Get(op, call.key, value);
      co_return Outcome(Found{found ? std::optional(value) : std::nullopt});
    }
    case Kind::kPut: {
      const bool inserted = co_await index.Put(op, call.key, call.value);
      co_return Outcome(Stored{inserted});
    }
    case Kind::kInsert: {
      const bool applied = co_await index.Insert(op, call.key, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kUpdate: {
      const bool applied = co_await index.Update(op, call.key, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kDelete: {
      const bool applied = co_await index.Delete(op, call.key);
      co_return Outcome(Applied{applied});
    }
    case Kind::kCompareAndSet: {
      const bool applied = co_await index.CompareAndSet(op, call.key, call.expected, call.value);
      co_return Outcome(Applied{applied});
    }
    case Kind::kIncrement: {
      const uint64_t value = co_await index.Increment(op, call.key, call.delta);
      co_return Outcome(Counted{value});
    }
  }
  co_return Error(ErrorCode::kInvalidArgument, "an unknown kind of operation");
}

Task<Done> PerformAll(Actor& self, index::Engine& engine, std::vector<Call> calls, CallsOptions options) {
  std::unique_ptr<index::Index> index = engine.Open(self.client());
  for (const Call& call : calls) {
    Result<Done> done = co_await Recorded(self, call, Perform(self.client(), *index, call)).Outcome();
    if (!done.ok() && options.must_succeed) co_return done.error();
    if (!options.fresh_index) continue;
    index = engine.Open(self.client());
    self.Forget(0);
  }
  co_return Done{};
}

Task<Done> FormatTable(Actor& self, index::Engine& engine) {
  Op op(self.client(), OpKind::kMaintenance);
  co_return co_await engine.Format(op);
}

Task<Done> VerifyTable(Actor& self, index::Engine& engine) {
  const std::unique_ptr<index::Index> index = engine.Open(self.client());
  Op op(self.client(), OpKind::kMaintenance);
  co_return co_await index->Verify(op);
}

}  // namespace

Program Format(index::Engine& engine) {
  return [&engine](Actor& self) { return FormatTable(self, engine); };
}

Program Calls(index::Engine& engine, std::vector<Call> calls, CallsOptions options) {
  return [&engine, calls = std::move(calls), options](Actor& self) {
    return PerformAll(self, engine, calls, options);
  };
}

Program Verify(index::Engine& engine) {
  return [&engine](Actor& self) { return VerifyTable(self, engine); };
}

}  // namespace farside::check
