// What the chime engine states about itself, and its entry in the list of engines.
#include "index/chime/chime.h"
#include "index/chime/mutants.h"
#include "index/engine_entry.h"

namespace farside::index::chime {

Traits ChimeEngine::traits() const {
  Traits traits{.ordered = true, .grows_by_nodes = true};
  if (options_.shape.inline_keys) traits.fixed_size = sizeof(uint64_t);
  return traits;
}

// Few keys: so leaves and nodes of one or two.
std::vector<OptionMap> ChimeEngine::stress_options() const {
  return {
      // A leaf for each key: splits, and a tree that grows with every one of them.
      {{"span", "1"}, {"neighbourhood", "1"}, {"fanout", "2"}, {"hotspot", "4096"}},
      // The same under one parent, so that leaves that become empty are merged.
      {{"span", "1"}, {"neighbourhood", "1"}, {"fanout", "8"}, {"hotspot", "4096"}},
      {{"span", "2"}, {"neighbourhood", "1"}, {"fanout", "8"}},
      // Moves inside of a leaf.
      {{"span", "4"}, {"neighbourhood", "2"}, {"fanout", "2"}, {"hotspot", "4096"}},
      // Some of both, and a client that remembers nothing.
      {{"span", "2"}, {"neighbourhood", "2"}, {"fanout", "3"}, {"cache", "0"}, {"hotspot", "0"}},
      // One leaf for all of them.
      {{"span", "8"}, {"neighbourhood", "4"}},
      // Keys and values in the leaves: splits and merges, and moves.
      {{"keys", "inline"}, {"span", "1"}, {"neighbourhood", "1"}, {"fanout", "8"}, {"hotspot", "4096"}},
      {{"keys", "inline"}, {"span", "4"}, {"neighbourhood", "2"}, {"fanout", "2"}, {"hotspot", "4096"}},
  };
}

// Reading as the trees do that the chime table is compared with.
std::map<std::string, OptionMap> ChimeEngine::conformance_options() const {
  return {{"as_others",
           {{"leaf_read", "whole"},
            {"insert_read", "whole"},
            {"fence_read", "always"},
            {"lock_read", "apart"},
            {"span", "4"},
            {"neighbourhood", "2"},
            {"fanout", "3"}}}};
}

// Keys and values of one word stand in the leaves themselves.
OptionMap ChimeEngine::OptionsFor(const ExpectedRecords& expected) const {
  if (expected.key_bytes != sizeof(uint64_t) || expected.value_bytes != sizeof(uint64_t)) return {};
  return {{"keys", "inline"}};
}

Result<std::shared_ptr<Engine>> MakeChimeEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<ChimeEngine>(*parsed));
}

EngineEntry Register() {
  return {.name = "chime", .rank = 20, .make = MakeChimeEngine, .mutants = kAllMutants};
}

}  // namespace farside::index::chime
