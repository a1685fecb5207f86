// Searches of one key that one client has in flight, when they share trips: one goes at a time, and the next
// one serves all that wait by then.
//
// INVARIANT search/1: a search gets the answer of another one only if that one began after it was asked for.
// A search that is on its way may have sampled its key already: a client that comes after a change has ended
// would be told what was there before. So a search that comes while another one is on its way waits for the
// next.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "index/kit/carrying_ticket.h"

namespace farside::index {

class SearchTicket : public CarryingTicket<SearchTicket> {
 public:
  // `value` outlives the ticket.
  SearchTicket(KeyQueue& queue, fabric::Client& client, uint64_t hash, std::string_view key,
               std::string& value)
      : CarryingTicket(queue, client, hash), key_(key), value_(value) {}

  // Whether the key was found, if another search has told.
  const std::optional<bool>& found() const { return found_; }

  // Before it begins, in its turn: it serves all that wait (search/1).
  void ServeWaiting() {
    assert(is_first() && !has_passengers());
    for (SearchTicket* other = NextOfKey(); other != nullptr; other = other->NextOfKey()) {
      if (other->key_ == key_) TakeAlong(*other);
    }
  }
  // It has ended.
  void Tell(bool found);

 private:
  const std::string_view key_;
  std::string& value_;
  std::optional<bool> found_;
};

}  // namespace farside::index
