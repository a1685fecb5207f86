#include "tests/support/in_flight.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace farside::index::in_flight {

void End(History& history, OpId id, Result<check::Outcome> outcome) {
  if (outcome.ok()) {
    history.Return(id, std::move(*outcome));
  } else if (outcome.error().code() == ErrorCode::kOutcomeUnknown) {
    history.LoseAnswer(id);
  } else {
    history.Refuse(id, outcome.error().ToString());
  }
}

Task<Done> Record(History& history, TableMember& member, int client, Request request) {
  Op op(member.client(), OpKind::kUpdate);
  const OpId id = history.Invoke(client, request.call());
  Result<check::Outcome> outcome = co_await check::Perform(member.index(), op, request.call()).Outcome();
  End(history, id, std::move(outcome));
  co_return Done{};
}

namespace {

// Searches all keys by one call; those that are left open are searched alone.
Task<Done> RecordTogether(History& history, TableMember& member, int client, std::vector<std::string> keys) {
  std::vector<std::string> values(keys.size());
  std::vector<Search> searches(keys.size());
  std::vector<OpId> ids;
  for (size_t i = 0; i < keys.size(); ++i) {
    ids.push_back(history.Invoke(client, Call::Get(keys[i])));
    searches[i].key = keys[i];
    searches[i].value = &values[i];
  }
  {
    Op op(member.client(), OpKind::kSearch);
    static_cast<void>(co_await member.index().SearchTogether(op, searches).Outcome());
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    check::Found found;
    switch (searches[i].outcome) {
      case Search::Outcome::kFound: found.value = values[i]; [[fallthrough]];
      case Search::Outcome::kAbsent: history.Return(ids[i], found); break;
      case Search::Outcome::kOpen: {
        Op op(member.client(), OpKind::kSearch);
        Result<check::Outcome> outcome =
            co_await check::Perform(member.index(), op, Call::Get(keys[i])).Outcome();
        End(history, ids[i], std::move(outcome));
      }
    }
  }
  co_return Done{};
}

// Keys and values have 8 bytes, as tables with keys=inline want them. Some values are too long for those, and
// refused there.
std::string InFlightKey(uint64_t number) { return fmt::format("key {:04}", number); }

std::string InFlightValue(uint64_t number) {
  return fmt::format("v{:07}{}", number, number % 8 == 0 ? " and more" : "");
}

Request DrawRequest(Random& random, uint64_t keys, int& values) {
  constexpr std::array kKinds = {Kind::kPut,    Kind::kPut,           Kind::kPut,      Kind::kUpdate,
                                 Kind::kUpdate, Kind::kInsert,        Kind::kDelete,   Kind::kGet,
                                 Kind::kGet,    Kind::kCompareAndSet, Kind::kIncrement};
  Request request;
  request.kind = kKinds[random.Below(kKinds.size())];
  request.key = InFlightKey(random.Below(keys));
  request.value = InFlightValue(static_cast<uint64_t>(++values));
  request.expected = InFlightValue(random.Below(static_cast<uint64_t>(values)) + 1);
  return request;
}

}  // namespace

Task<Done> RecordSome(History& history, TableMember& member, int client, Options options, Random random,
                      int& values) {
  for (int i = 0; i < 5; ++i) {
    if (options.together && random.Below(5) == 0) {
      std::vector<std::string> keys;
      for (uint64_t key = 0; key < options.keys; ++key) keys.push_back(InFlightKey(key));
      keys.emplace_back("not ever");
      co_await RecordTogether(history, member, client, std::move(keys));
    } else {
      Request request = DrawRequest(random, options.keys, values);
      co_await Record(history, member, client, std::move(request));
    }
  }
  co_return Done{};
}

}  // namespace farside::index::in_flight
