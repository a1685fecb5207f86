// What the steps of one search, or of one change, share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/op.h"
#include "index/chime/deferred_work.h"
#include "index/chime/hotspots.h"
#include "index/chime/layout.h"
#include "index/chime/locator.h"
#include "index/chime/target.h"
#include "index/kit/change.h"
#include "index/kit/draft.h"
#include "pool/client.h"

namespace farside::index::chime {

enum class Attempt : uint8_t { kDone, kRetry };

struct SearchContext {
  fabric::Op& op;
  std::string& value;
  Target target;
  std::optional<pool::PoolClient::Pin> pin = std::nullopt;

  Position position = {};
  NodePtr dead = {};  // the last dead leaf that the search came to
  int torn = 0;       // attempts at this leaf that met entries on the move
};

struct ChangeContext {
  fabric::Op& op;
  Change change;
  Target target;
  std::optional<pool::PoolClient::Pin> pin = std::nullopt;
  int attempt = 0;  // under this pin
  DeferredWork deferred;
  Draft draft = {};
  Changed result = {};

  Position position = {};                   // null: the leaf has to be found
  std::optional<Spot> spot = std::nullopt;  // where the key was found last, if the change looks there alone
};

// What came of an attempt under the lock of a leaf.
enum class Step : uint8_t {
  kCommitted,  // the change is done, and the lock is released
  kEmptied,    // the same; and the leaf has no entries left, as far as the change has seen
  kUnchanged,  // there was nothing to do; the lock is held
  kBeyond,     // the key is not below the leaf's fence; the lock is held
  kElsewhere,  // the key is not where it was found last; the lock is held
  kDead,       // the leaf has an heir; the lock is held
  kAgain,      // the leaf was split, or there was no memory at hand; the lock is released
};

}  // namespace farside::index::chime
