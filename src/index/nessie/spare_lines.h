// Room for tombstones when the pool is full: a delete must not fail for want of memory.
//
// A table has a few lines of its own on each node, each with an owner word in the root:
//
//   free -> owned by a client -> free
//
// The client that owns a line writes a tombstone to it. When the tombstone is unlinked, the client keeps the
// line until a grace period has passed, since readers may still hold its address, and gives it back with its
// next change on that node. From a client that is gone, another one takes the line over: first it takes back
// the entry that may still name the line, and then waits for a grace period itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "fabric/address.h"
#include "farside/task.h"
#include "index/nessie/access.h"
#include "pool/client.h"

namespace farside::index::nessie {

class SpareLines {
  struct Line {
    Partition* part = nullptr;
    size_t number = 0;
    bool in_use = false;     // of an operation
    bool is_linked = false;  // a slot may name it
    bool past_grace = true;  // since it was unlinked
    uint64_t graces = 0;     // how many it was to wait for
  };

 public:
  explicit SpareLines(pool::PoolClient& pool) : pool_(pool) {}

  // A line while an operation uses it.
  class Use {
   public:
    explicit Use(std::shared_ptr<Line> line) : line_(std::move(line)) { line_->in_use = true; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { line_->in_use = false; }

    fabric::FarAddr at() const;
    // Whether no reader can hold its address any more.
    bool may_be_written() const { return line_->past_grace; }
    void Publish() {
      line_->is_linked = true;
      line_->past_grace = false;
    }
    void Unpublish() {
      line_->is_linked = false;
      line_->past_grace = true;
    }

   private:
    std::shared_ptr<Line> line_;
  };

  // None: all lines are taken, or wait for their grace.
  Task<std::unique_ptr<Use>> Take(Access at);
  // The tombstone at this offset is unlinked. Nothing happens if it is on no line of this client.
  void Unlinked(Partition& part, uint64_t offset);
  bool has_lines() const { return !lines_.empty(); }
  // Gives back what is past its grace. No trip is awaited.
  void GiveBack(const Access& at);

 private:
  Task<bool> TakeLine(const Access& at, size_t number);
  // The line of a client that is gone: no slot names it any more.
  Task<bool> Release(const Access& at, size_t number);
  void AwaitGrace(const std::shared_ptr<Line>& line);

  pool::PoolClient& pool_;
  std::list<std::shared_ptr<Line>> lines_;  // of this client
};

}  // namespace farside::index::nessie
