// See Allocator::InDoubt.
#pragma once

#include "pool/memory/allocator.h"

namespace farside::pool {

class Allocator::InDoubt {
 public:
  explicit InDoubt(Allocator& allocator) : allocator_(allocator) {}
  InDoubt(const InDoubt&) = delete;
  InDoubt& operator=(const InDoubt&) = delete;
  ~InDoubt() {
    if (!resolved_) allocator_.lost_ = true;
  }
  // What is known here is true again.
  void Resolve() { resolved_ = true; }

 private:
  Allocator& allocator_;
  bool resolved_ = false;
};

}  // namespace farside::pool
