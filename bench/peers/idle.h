// What the servers cost while no client asks them anything: processor time of each over some seconds, with
// connections open.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/peers/interrupt.h"
#include "bench/peers/system.h"
#include "farside/result.h"

namespace farside::peers {

struct IdleRow {
  std::string system;
  size_t connections = 0;   // as many as it took, up to what was asked for
  bool has_daemon = false;  // otherwise the system is part of this process, and nothing is measured
  double percent = 0;       // of one core
};

// All of them at the same time.
Result<std::vector<IdleRow>> MeasureIdle(const std::vector<std::unique_ptr<System>>& systems,
                                         size_t connections, double seconds, Interrupt& interrupt);

std::string IdleText(const std::vector<IdleRow>& rows, double seconds);
std::string IdleJson(const std::vector<IdleRow>& rows, double seconds);

}  // namespace farside::peers
