#include "tools/common/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside::tools {
namespace {

constexpr auto kPatience =
    std::chrono::seconds(30);  // until it is ready; large files take a while to reserve
constexpr auto kStopPatience = std::chrono::seconds(5);  // until it has stopped
constexpr auto kStopLook = std::chrono::milliseconds(10);
constexpr size_t kMostOutput = 64 * 1024;

// The two ends of a pipe, closed with it.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    CloseEnd(0);
    CloseEnd(1);
  }
  bool ok() const { return ends_[0] >= 0; }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void CloseWriter() { CloseEnd(1); }

 private:
  void CloseEnd(size_t end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

// Ends the process and collects it.
void EndNow(pid_t pid) {
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
}

[[noreturn]] void BecomeDaemon(const char* program, int output, pid_t parent, char* const* arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before we could ask
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv(program, arguments);
  ::_exit(127);
}

// What it has said when it is ready, or when it has ended.
Result<std::vector<std::string>> AwaitReady(int output) {
  std::string said;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (said.size() < kMostOutput) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd readable{.fd = output, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    std::array<char, 4096> piece;
    const ssize_t got = ::read(output, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error(ErrorCode::kUnavailable, "the memory node did not start: " + Escape(said));
    said.append(piece.data(), static_cast<size_t>(got));
    for (size_t begin = 0, end; (end = said.find('\n', begin)) != std::string::npos; begin = end + 1) {
      std::vector<std::string> urls = ParseReadyLine(std::string_view(said).substr(begin, end - begin));
      if (!urls.empty()) return urls;
    }
  }
  return Error(ErrorCode::kUnavailable, "the memory node was not ready in time: " + Escape(said));
}

// Reads what the daemon logs, so that it never has to wait for a full pipe.
void DropOutput(int output) {
  std::thread([output] {
    std::array<char, 4096> piece;
    while (true) {
      const ssize_t got = ::read(output, piece.data(), piece.size());
      if (got == 0 || (got < 0 && errno != EINTR)) break;
    }
    ::close(output);
  }).detach();
}

}  // namespace

std::vector<std::string> ParseReadyLine(std::string_view line) {
  constexpr std::string_view kReady = "ready ";
  if (!line.starts_with(kReady)) return {};
  line.remove_prefix(kReady.size());
  std::vector<std::string> urls;
  while (!line.empty()) {
    const size_t space = line.find(' ');
    const std::string_view word = line.substr(0, space);
    if (!word.empty()) urls.emplace_back(word);
    line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
  }
  return urls;
}

Result<Daemon> Daemon::Start(const std::vector<std::string>& arguments, const std::string& program) {
  // Everything that allocates comes before the fork: afterwards another thread's lock may be held for ever.
  std::vector<std::string> words = {"farside", "serve"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  Pipe pipe;
  const pid_t parent = ::getpid();
  const pid_t pid = pipe.ok() ? ::fork() : -1;
  if (pid < 0) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot start a memory node: {}", std::generic_category().message(errno)));
  }
  if (pid == 0) BecomeDaemon(program.c_str(), pipe.writer(), parent, argv.data());
  pipe.CloseWriter();
  Result<std::vector<std::string>> urls = AwaitReady(pipe.reader());
  if (!urls.ok()) {
    EndNow(pid);
    return urls.error();
  }
  DropOutput(::fcntl(pipe.reader(), F_DUPFD_CLOEXEC, 0));
  return Daemon(pid, std::move(*urls));
}

Daemon::~Daemon() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kStopPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) return;
    std::this_thread::sleep_for(kStopLook);
  }
  EndNow(pid_);
}

void Daemon::Kill() {
  if (pid_ != 0) EndNow(std::exchange(pid_, 0));
}

std::string Daemon::Url(std::string_view scheme) const {
  for (const std::string& url : urls_) {
    if (url.starts_with(scheme) && url.substr(scheme.size()).starts_with(":")) return url;
  }
  return "";
}

}  // namespace farside::tools
