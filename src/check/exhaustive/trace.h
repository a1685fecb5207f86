// What happened in one run of a scenario, for people.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "check/exhaustive/monitor.h"
#include "check/exhaustive/request.h"
#include "check/history.h"

namespace farside::check::exhaustive {

class Trace {
 public:
  // "client 2", or "client 2 (late)" for a trip that no client waits for any more.
  void Add(uint32_t actor, bool late, std::string_view what);
  void Add(const Event& event);
  // A part of a verb takes effect on the region as it is now. `name` is how people call the address.
  void Add(const Request& request, const Piece& part, bool late, std::span<const std::byte> region,
           std::string_view name, std::string_view remark);

  const std::vector<std::string>& lines() const { return lines_; }
  const History& history() const { return history_; }

 private:
  std::vector<std::string> lines_;
  History history_;
  std::map<uint32_t, OpId> ids_;  // by Event::operation
};

}  // namespace farside::check::exhaustive
