// A system under test: something that holds records and can be asked for them.
//
// The driver knows systems by this interface only, so all of them run the same batches, in the same number,
// on the same clock. What differs is how a client may ask: a system names its manners (one command per key or
// one for many, waiting in the kernel or spinning), and the driver uses the one that turns out to be the
// fastest.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "bench/peers/batch.h"
#include "farside/result.h"

namespace farside::peers {

// How a client waits for answers.
enum class Wait {
  kBlock,  // in the kernel, which wakes it up
  kSpin,   // it asks again and again
};

// One of the ways to ask a system.
struct Manner {
  int style = 0;  // what the number means is the system's business
  Wait wait = Wait::kBlock;
  std::string name;  // "MGET, spinning"
};

// What one thread uses a system through.
class Connection {
 public:
  virtual ~Connection() = default;

  // Performs all operations of the batch and verifies the answers. A value that is missing or wrong is
  // kCorrupt.
  virtual Status Run(Operation operation, const Batch& batch, const Manner& manner) = 0;
};

class System {
 public:
  virtual ~System() = default;

  // "redis, tcp"
  virtual const std::string& name() const = 0;
  // Ratios are against the first system that says so.
  virtual bool is_farside() const { return false; }
  // Whether a connection remembers what it has read; then it reads all of it before anything is measured.
  virtual bool remembers() const { return false; }
  // "redis 7.0.15"; empty if it is the version of this program.
  virtual Result<std::string> Version() = 0;
  // The process that serves it; none if it is part of this one.
  virtual std::optional<pid_t> daemon() const = 0;

  // Never empty; the first one always works.
  virtual std::vector<Manner> Manners(Operation operation) const = 0;
  // For batches and values of these sizes at most. Connections must be gone before the system is.
  virtual Result<std::unique_ptr<Connection>> Connect(size_t depth, size_t value_size) = 0;
};

// The error of an answer that should not be.
inline Error WrongAnswer(std::string_view key, std::string_view what) {
  return Error(ErrorCode::kCorrupt, "the answer for key " + std::string(key) + " is " + std::string(what));
}

}  // namespace farside::peers
