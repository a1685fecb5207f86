// What a node may answer to Calls: an input is a row of answers, each behind its length in two bytes, which
// the clients of a continuity table get in this order. One of no bytes is left to the handler, and so is what
// comes behind the last. Each operation ends with an answer or an error, and so does leaving the pool.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "fabric/service.h"
#include "index/continuity/continuity.h"
#include "index/continuity/request.h"
#include "store/engines.h"
#include "tests/fuzz/target.h"
#include "tests/support/table_world.h"

namespace farside::fuzz {
namespace {

namespace continuity = index::continuity;
using continuity::Needs;
using continuity::Reply;
using fabric::ClientId;
using fabric::NodeMemory;
using index::TableMember;
using index::TableWorld;

constexpr std::array kCalls = {continuity::kChangeCall, continuity::kGrowCall, continuity::kMoveCall,
                               continuity::kSettleCall};

const fabric::CallTable& HonestCalls() {
  static const fabric::CallTable calls = [] {
    fabric::CallTable all;
    store::RegisterHandlers(all);
    return all;
  }();
  return calls;
}

template <class T>
void Do(TableWorld& world, Task<T> task) {
  task.Start();
  world.Drive([&task] { return task.done(); });
  Require(task.done(), "an operation ends, whatever a node answers");
  static_cast<void>(task.TakeResult());
}

Bytes RowOf(const std::vector<std::string>& answers) {
  Bytes row;
  for (const std::string& answer : answers) {
    Append(row, static_cast<uint16_t>(answer.size()));
    row.insert(row.end(), answer.begin(), answer.end());
  }
  return row;
}

}  // namespace

// Of each kind of reply one, before and behind what a handler answers.
std::vector<Bytes> Seeds() {
  std::vector<Reply> replies;
  for (const Needs needs : {Needs::kGroup, Needs::kTable, Needs::kEndOfGrowth})
    replies.push_back({.needs = needs});
  replies.push_back({.applied = true, .linked_block = true});
  replies.push_back({.applied = true, .was_present = true, .counter = 7});
  Reply& frees = replies.emplace_back();
  frees.applied = true;
  frees.Free({.offset = 64 * 1024, .bytes = 256});
  frees.Free({.offset = 128 * 1024, .bytes = 4096});
  std::vector<Bytes> seeds;
  for (const Reply& reply : replies) {
    const std::string answer = continuity::EncodeFixed(reply);
    seeds.push_back(RowOf({answer, answer}));
    seeds.push_back(RowOf({"", "", "", "", answer, "", answer, answer}));
  }
  return seeds;
}

void Try(Input input) {
  const auto world = std::make_unique<TableWorld>(index::WorldOptions{.region_bytes = 256 << 10});
  TableMember member(*world, "continuity", continuity::MakeContinuityEngine, {{"pairs", "2"}});
  for (const fabric::CallId call : kCalls) {
    world->fabric.calls().Set(
        call,
        [call, &input](NodeMemory& memory, ClientId caller, std::string_view request) -> Result<std::string> {
          const std::span<const uint8_t> answer = input.TakeBytes(input.Take<uint16_t>());
          if (answer.empty()) return HonestCalls().Handle(call, memory, caller, request);
          return std::string(AsText(std::as_bytes(answer)));
        });
  }
  const std::string large(300, 'v');
  for (const char* const key : {"a", "b", "c"}) {
    Do(*world, member.Put(key, "small"));
    Do(*world, member.Put(key, large));
    Do(*world, member.Insert(std::string("other ") + key, large));
    Do(*world, member.Get(key));
  }
  for (int i = 0; i < 12; ++i) Do(*world, member.Put("key " + std::to_string(i), "small"));
  Do(*world, member.Update("a", "smaller"));
  Do(*world, member.Delete("b"));
  Do(*world, member.Maintain());
  Do(*world, member.Maintain());
  Do(*world, member.Put("c", large));
  Do(*world, member.Leave());
}

}  // namespace farside::fuzz
