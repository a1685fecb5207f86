// A node's memory as a client has mapped it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/descriptor.h"
#include "base/fork_guard.h"
#include "fabric/shm/layout.h"
#include "farside/result.h"

namespace farside::fabric::shm {

// Shared by the clients of a fabric; unmapped with the last of them. A child of fork does not have it.
class Mapping {
 public:
  // Maps what a daemon has sent. Nothing is believed that could make an access fail later. `node` is how the
  // daemon is called in messages.
  static Result<std::shared_ptr<Mapping>> Map(const std::string& node, const Welcome& welcome,
                                              const Descriptor& control, const Descriptor& region);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  Control& control() const { return *control_; }
  std::span<std::byte> region() const { return region_; }
  uint64_t instance() const { return instance_; }
  // Then this process does not have it.
  bool forked() const { return guard_.forked(); }

 private:
  Mapping(Control* control, std::span<std::byte> region, uint64_t instance);

  Control* const control_;
  const std::span<std::byte> region_;
  const uint64_t instance_;
  const ForkGuard guard_;
};

}  // namespace farside::fabric::shm
