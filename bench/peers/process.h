// A process that this one has started and ends again, and a folder for what it leaves behind.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "farside/result.h"

namespace farside::peers {

// Gone with everything in it when the object is.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Make();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Ended by its id when the object is gone: asked first, and killed if it does not listen. If this process
// dies without a chance to do that, the kernel kills it. Start it from a thread that stays, because to the
// kernel that is its parent.
class Process {
 public:
  // The program is looked for on the PATH. What it says goes to `output`, a file.
  static Result<Process> Start(const std::vector<std::string>& words, std::string output);
  Process(Process&& other) noexcept
      : id_(std::exchange(other.id_, 0)), name_(std::move(other.name_)), output_(std::move(other.output_)) {}
  Process& operator=(Process&&) = delete;
  ~Process();

  pid_t id() const { return id_; }
  const std::string& name() const { return name_; }
  // What it has said so far; of a long text the first part.
  std::string Output() const;
  // An error with its last words if it has ended.
  Status Alive();

 private:
  Process(pid_t id, std::string name, std::string output)
      : id_(id), name_(std::move(name)), output_(std::move(output)) {}

  pid_t id_;  // 0: none
  std::string name_;
  std::string output_;
};

// User and system time that a process has used, all threads together; absent if there is no such process.
std::optional<Nanos> CpuTime(pid_t process);

}  // namespace farside::peers
