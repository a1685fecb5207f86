// What a client that may only read may change all the same. The server of a node has one for each connection
// of such a client, and uses it from one thread.
#pragma once

#include <functional>
#include <memory>

#include "fabric/address.h"
#include "fabric/memory/line_memory.h"
#include "fabric/verb.h"
#include "farside/result.h"

namespace farside::fabric::memory {

class ReaderGuard {
 public:
  virtual ~ReaderGuard() = default;
  // Whether the reader may execute this verb now. Asked before a frame begins, and again right before the
  // verb takes effect: verbs before it may have changed the answer. May set aside what the verb needs.
  virtual bool May(const Verb& verb) = 0;
  // The verb has taken effect, and has its answer.
  virtual void Executed(const Verb& verb) = 0;
  // The reader is gone: undoes what it has left. Called once, after the last verb.
  virtual void Depart() = 0;
};

// Makes the guard of a connection. kAlreadyExists: something in the memory names another client by this id.
// kUnavailable: the memory gave up on a line. Called by any thread of the server.
using NewReaderGuard = std::function<Result<std::unique_ptr<ReaderGuard>>(LineMemory& memory, ClientId id)>;

}  // namespace farside::fabric::memory
