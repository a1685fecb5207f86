#include "bench/peers/process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace farside::peers {
namespace {

constexpr size_t kMostOutput = size_t{64} << 10;
constexpr int kExecFailed = 127;

Error SystemError(std::string_view what) {
  return Error(ErrorCode::kUnavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

// In the child, between fork and exec: only what is safe in a process that had threads. Does not return.
[[noreturn]] void BecomeChild(char* const* words, int output, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);  // Ctrl-C in the terminal is for the parent, which then ends this one
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent && ::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(output, STDERR_FILENO) >= 0) {
    ::execvp(words[0], words);
  }
  ::_exit(kExecFailed);
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::Make() {
  const char* const parent = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/farside-peers-XXXXXX", parent != nullptr ? parent : "/tmp");
  if (::mkdtemp(path.data()) == nullptr) return SystemError("cannot make the folder " + path);
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<Process> Process::Start(const std::vector<std::string>& words, std::string output) {
  std::vector<std::string> copies = words;
  std::vector<char*> pointers;
  pointers.reserve(copies.size() + 1);
  for (std::string& word : copies) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return SystemError("cannot write " + output);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) BecomeChild(pointers.data(), file, parent);
  const int number = errno;
  ::close(file);
  errno = number;
  if (child < 0) return SystemError("cannot start " + words.front());
  return Process(child, words.front(), std::move(output));
}

Process::~Process() {
  using namespace std::chrono_literals;
  if (id_ <= 0) return;
  ::kill(id_, SIGTERM);
  const SteadyClock clock;
  const Nanos deadline = clock.Now() + 5s;
  while (::waitpid(id_, nullptr, WNOHANG) == 0) {
    if (clock.Now() >= deadline) {
      ::kill(id_, SIGKILL);
      ::waitpid(id_, nullptr, 0);
      return;
    }
    std::this_thread::sleep_for(5ms);
  }
}

std::string Process::Output() const {
  std::ifstream file(output_, std::ios::binary);
  std::string text(kMostOutput, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

Status Process::Alive() {
  int status = 0;
  if (id_ <= 0) return Error(ErrorCode::kUnavailable, fmt::format("{} has ended", name_));
  if (::waitpid(id_, &status, WNOHANG) == 0) return OkStatus();
  id_ = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExecFailed) {
    return Error(ErrorCode::kNotFound, fmt::format("cannot run {}; is it installed?", name_));
  }
  return Error(ErrorCode::kUnavailable, fmt::format("{} has ended; it said: {}", name_, Output()));
}

std::optional<Nanos> CpuTime(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::ostringstream all;
  if (!file || !(all << file.rdbuf())) return std::nullopt;
  const std::string text = all.str();
  // The second field is a name in parentheses that may hold anything, so count from its end: state is the
  // first behind.
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  uint64_t user = 0;
  uint64_t system = 0;
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (!(fields >> user >> system) || ticks <= 0) return std::nullopt;
  return Nanos(static_cast<int64_t>((user + system) * (1'000'000'000 / static_cast<uint64_t>(ticks))));
}

}  // namespace farside::peers
