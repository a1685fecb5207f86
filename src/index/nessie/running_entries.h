// Which pending entries of this client belong to an operation that runs.
//
// An operation that is destroyed between its entry and its commit leaves the entry, and its client lives on:
// no other client may touch it (nessie/6). So the client itself takes it back when it meets it: an entry of
// its own that no running operation has is that of a writer that is gone (nessie/5). A verb of the destroyed
// operation may still be on its way, so the item is not used again while this client lives.
#pragma once

#include "index/nessie/layout.h"
#include "index/nessie/partition.h"

namespace farside::index::nessie {

class RunningEntries {
 public:
  // From before the trip that makes the entry pending until the operation has ended, or makes another one.
  class Entry {
   public:
    Entry(RunningEntries& all, const Partition& part, Word pending)
        : part_(part), pending_(pending), next_(all.first_), link_(&all.first_) {
      *link_ = this;
      if (next_ != nullptr) next_->link_ = &next_;
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() {
      *link_ = next_;
      if (next_ != nullptr) next_->link_ = link_;
    }

   private:
    friend class RunningEntries;

    const Partition& part_;
    const Word pending_;
    Entry* next_;
    Entry** link_;  // what points to this one
  };

  bool Has(const Partition& part, Word pending) const {
    for (const Entry* entry = first_; entry != nullptr; entry = entry->next_) {
      if (&entry->part_ == &part && entry->pending_ == pending) return true;
    }
    return false;
  }

 private:
  Entry* first_ = nullptr;
};

}  // namespace farside::index::nessie
