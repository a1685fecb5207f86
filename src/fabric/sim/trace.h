// A readable record of what happened in a simulated world, one line per event. The same seed gives the
// same bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "fabric/address.h"
#include "fabric/verb.h"

namespace farside::fabric::sim {

class Trace {
 public:
  // What lies at an address, in the words of the engine; may return an empty string.
  using Describe = std::function<std::string(FarAddr)>;

  explicit Trace(Describe describe = nullptr) : describe_(std::move(describe)) {}
  void set_describe(Describe describe) { describe_ = std::move(describe); }

  // "n0+0x40 (bucket 1 head)"
  std::string Where(FarAddr at) const;
  // "CAS n0+0x40 (bucket 1 head) 0x0->0x7"
  std::string What(const Verb& verb) const;
  // Words in hexadecimal, zeros cut short; a few at most.
  static std::string Brief(std::span<const std::byte> bytes);

  void Add(Nanos now, ClientId client, std::string_view what);

  const std::vector<std::string>& lines() const { return lines_; }
  std::string ToString() const;

 private:
  Describe describe_;
  std::vector<std::string> lines_;
};

}  // namespace farside::fabric::sim
