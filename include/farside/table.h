// Table: a table of a pool that was opened by name; what every operation of a Session is told first.
//
// A handle, like Pool: open a table once, and share it between threads. Each session keeps its own caches for each
// handle, so opening the same table again and again makes every session fill them again.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace farside {

namespace store {
struct TableState;
}  // namespace store

class Table {
 public:
  const std::string& name() const;
  const std::string& engine() const;
  // Whether it keeps its keys in order, so that Session::Scan works.
  bool ordered() const;

  // For the library itself.
  explicit Table(std::shared_ptr<const store::TableState> state) : state_(std::move(state)) {}
  const store::TableState& state() const { return *state_; }

 private:
  std::shared_ptr<const store::TableState> state_;
};

}  // namespace farside
