// A table for tests of the engine kit's drivers (index/kit/keyed_index.h). Its records are in a map that its
// clients share, in no far memory; a script says what its attempts come to, and it notes what the drivers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "farside/result.h"
#include "index/index.h"
#include "index/kit/context.h"
#include "tests/support/table_world.h"

namespace farside::index::toy {

// What an attempt comes to.
struct Step {
  enum class Kind : uint8_t { kSucceed, kSucceedLate, kRetry, kFail, kHang };
  Kind kind = Kind::kSucceed;
  ErrorCode error = ErrorCode::kContended;
  bool with_draft = false;  // a block is allocated first
  bool in_doubt = false;    // from now on the change may have had an effect

  static Step Late() { return {.kind = Kind::kSucceedLate}; }
  static Step Retry() { return {.kind = Kind::kRetry}; }
  static Step Fail(ErrorCode error) { return {.kind = Kind::kFail, .error = error}; }
  static Step FailWithDraft() { return {.kind = Kind::kFail, .with_draft = true}; }
  // Until the operation is destroyed.
  static Step Hang() { return {.kind = Kind::kHang}; }
  static Step HangInDoubt() { return {.kind = Kind::kHang, .in_doubt = true}; }
};

struct ToyState {
  std::map<std::string, std::string, std::less<>> records;
  size_t most_value_bytes = 1000;  // a change that stores more is out of memory
  std::deque<Step> script;         // of the attempts to come; when it is used up, they succeed
  bool share_searches = false;     // of members that join from now on
  bool always_contended = false;   // whatever the script says
  bool dropped = false;            // set by the test: no attempt may begin any more

  // ---- what has happened
  std::vector<int> attempts;                        // of each that began: its number under its pin
  size_t ended = 0;                                 // attempts
  std::map<std::string, int, std::less<>> running;  // attempts of changes at this moment, by their key
  size_t most_running = 0;                          // keys that were changed at once
  const index::ChangeContext* change = nullptr;     // of the last attempt; until its operation ends
  std::string problem;                              // the first

  void Complain(std::string what) {
    if (problem.empty()) problem = std::move(what);
  }
};

Result<std::shared_ptr<Engine>> MakeToyEngine(const OptionMap& options);

// A client with the toy table open.
class ToyMember : public TableMember {
 public:
  ToyMember(TableWorld& world, ToyState& state);
};

}  // namespace farside::index::toy
