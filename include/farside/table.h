// Table: a handle of one table of a pool, made by Pool::CreateTable and Pool::OpenTable. Every operation of a
// Session takes one.
//
// Open a table once, and share the handle between threads. Each session keeps caches for each handle, so a
// program that opens the same table again and again makes its sessions fill their caches again.
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
  // Of a table that was moved from: empty, and not ordered.
  const std::string& name() const;
  const std::string& engine() const;
  // Whether the table keeps its keys in order, so that Session::Scan works.
  bool ordered() const;

  // Used by the library itself.
  explicit Table(std::shared_ptr<const store::TableState> state) : state_(std::move(state)) {}
  const store::TableState& state() const { return *state_; }
  bool has_state() const { return state_ != nullptr; }  // false: it was moved from

 private:
  std::shared_ptr<const store::TableState> state_;
};

}  // namespace farside
