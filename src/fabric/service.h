// What a memory node's CPU does for clients: handlers of Call, by engine and operation.
//
// Handlers reach the region through NodeMemory only. The node never does read-modify-write on a word
// that clients CAS; what it stores becomes visible to READs in program order, word by word.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "fabric/address.h"
#include "fabric/verb.h"
#include "farside/result.h"

namespace farside::fabric {

// What handlers have made durable, in lines, and how often they have waited for that.
struct FlushCounts {
  uint64_t lines = 0;
  uint64_t drains = 0;

  FlushCounts& operator+=(const FlushCounts& more) {
    lines += more.lines;
    drains += more.drains;
    return *this;
  }
  friend FlushCounts operator-(const FlushCounts& now, const FlushCounts& before) {
    return {now.lines - before.lines, now.drains - before.drains};
  }
  friend bool operator==(const FlushCounts&, const FlushCounts&) = default;
};

class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  virtual uint64_t bytes() const = 0;
  // Aligned 8-byte words.
  virtual uint64_t Load(uint64_t offset) const = 0;
  virtual void Store(uint64_t offset, uint64_t word) = 0;

  // Begins to make the lines of these bytes durable, with what was stored in them so far, by any client.
  void Flush(uint64_t offset, uint64_t size) {
    if (size == 0) return;
    const uint64_t first = offset / kLineBytes * kLineBytes;
    const uint64_t end = (offset + size + kLineBytes - 1) / kLineBytes * kLineBytes;
    flushed_.lines += (end - first) / kLineBytes;
    FlushLines(first, end - first);
  }
  // Returns when all that was flushed is durable: it survives a power cut. Of everything else, any subset of
  // words may survive.
  void Drain() {
    ++flushed_.drains;
    DrainLines();
  }
  // Counted whether or not the memory can survive anything.
  const FlushCounts& flushed() const { return flushed_; }

 private:
  // Without effect on memory that cannot outlive its process.
  virtual void FlushLines(uint64_t /*offset*/, uint64_t /*size*/) {}
  virtual void DrainLines() {}

  FlushCounts flushed_;
};

using CallHandler =
    std::function<Result<std::string>(NodeMemory& memory, ClientId caller, std::string_view request)>;

// Answered by nodes that know their clients by their connections (Client::CanTellGoneClients): which of these
// clients are not connected any more? The request is a list of client ids, 4 bytes each; the reply has a byte
// for each, 1 if it is gone. Nothing of one that is gone takes effect at this node any more, and it does not
// come back.
inline constexpr CallId kGoneClients{0xffff, 1};

// Filled before the node serves its first client; not changed afterwards.
class CallTable {
 public:
  void Set(CallId call, CallHandler handler) { handlers_[call] = std::move(handler); }
  Result<std::string> Handle(CallId call, NodeMemory& memory, ClientId caller,
                             std::string_view request) const;

 private:
  std::map<CallId, CallHandler> handlers_;
};

}  // namespace farside::fabric
