// A child process that a test lets run instruction by instruction, and kills wherever it likes. So a protocol
// between processes can be cut at every single instruction, without any hook in the code that is tested.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace farside {

class SteppedProcess {
 public:
  // Whether this machine can do it. Single steps break load-linked/store-conditional loops, so it is for
  // x86-64.
  static bool Possible() {
#if defined(__x86_64__)
    SteppedProcess probe([] {});
    return probe.Step();
#else
    return false;
#endif
  }

  // A fork of this process that is about to run `body` and then to exit. `body` must not need other threads,
  // nor anything that cleans up after it.
  explicit SteppedProcess(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ == 0) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::raise(SIGSTOP);
      body();
      ::_exit(0);
    }
    int status = 0;
    running_ = ::waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status);
  }
  SteppedProcess(const SteppedProcess&) = delete;
  SteppedProcess& operator=(const SteppedProcess&) = delete;
  ~SteppedProcess() { Kill(); }

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }

  // Executes one instruction. False: the process has ended by itself.
  bool Step() {
    if (!running_ || ::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) != 0) return false;
    int status = 0;
    running_ = ::waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status);
    return running_;
  }
  // False: it has ended before.
  bool Step(uint64_t instructions) {
    for (uint64_t i = 0; i < instructions; ++i) {
      if (!Step()) return false;
    }
    return running_;
  }
  // Lets it run until it stops itself (raise(SIGSTOP)), or ends: then false.
  bool RunUntilItStops() {
    if (!running_ || ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr) != 0) return false;
    int status = 0;
    running_ = ::waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status);
    return running_;
  }
  // Another process has killed it: waits until it is gone.
  void AwaitEnd() {
    int status = 0;
    while (running_ && ::waitpid(pid_, &status, 0) == pid_) running_ = WIFSTOPPED(status);
  }
  // SIGKILL, and waits until it is gone.
  void Kill() {
    if (!running_) return;
    running_ = false;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }

 private:
  const pid_t pid_;
  bool running_ = false;
};

}  // namespace farside
