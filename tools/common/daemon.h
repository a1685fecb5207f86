// A private memory node: `farside serve` as a child process, for benchmarks and experiments. It is asked to
// stop when its owner is done with it, and the kernel ends it if the owner dies first.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "farside/result.h"

namespace farside::tools {

class Daemon {
 public:
  // Starts `program`, by default this very binary, with "serve" and `arguments`, and waits for its line that
  // it is ready. What it logs is dropped, unless it fails: then the error tells.
  static Result<Daemon> Start(const std::vector<std::string>& arguments,
                              const std::string& program = "/proc/self/exe");

  Daemon(Daemon&& other) noexcept : pid_(std::exchange(other.pid_, 0)), urls_(std::move(other.urls_)) {}
  Daemon& operator=(Daemon&&) = delete;
  ~Daemon();

  pid_t pid() const { return pid_; }
  // At once, as a crash would.
  void Kill();
  // The pool URL with this scheme ("tcp", "shm"); empty if it does not serve that.
  std::string Url(std::string_view scheme) const;

 private:
  Daemon(pid_t pid, std::vector<std::string> urls) : pid_(pid), urls_(std::move(urls)) {}

  pid_t pid_;
  std::vector<std::string> urls_;
};

// The URLs of a line as a daemon prints when it is ready: "ready tcp://127.0.0.1:7700 shm:NAME". Empty if it
// is none.
std::vector<std::string> ParseReadyLine(std::string_view line);

}  // namespace farside::tools
