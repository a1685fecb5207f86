#include "fabric/shm/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside::fabric::shm {
namespace {

constexpr size_t kMaxDescriptors = 4;
// A control buffer has room for exactly so many: none of them is moved while forks are delayed.
static_assert(CMSG_SPACE(kMaxDescriptors * sizeof(int)) == CMSG_LEN(kMaxDescriptors * sizeof(int)));
// How long a daemon may take to accept a connection. It does nothing else that takes time.
constexpr timeval kPatience = {.tv_sec = 10, .tv_usec = 0};
constexpr size_t kMaxName = 64;

std::string Because(int error) { return std::generic_category().message(error); }

bool IsPath(std::string_view node) { return node.find('/') != std::string_view::npos; }

bool IsName(std::string_view node) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !node.empty() && node.size() <= kMaxName && node[0] != '.' &&
         std::all_of(node.begin(), node.end(), good);
}

Error BadName(std::string_view node) {
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("\"{}\" cannot name a memory node; use up to {} letters, digits, '-', '_' and '.', or the "
                  "path of its socket",
                  Escape(node), kMaxName));
}

std::string UserFolder() { return fmt::format("/tmp/farside-{}", ::geteuid()); }
constexpr std::string_view kSystemFolder = "/run/farside";

// Empty if there is none.
std::string SessionFolder() {
  const char* const runtime =
      std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe): no thread sets it
  return runtime == nullptr || *runtime != '/' ? "" : fmt::format("{}/farside", runtime);
}

// A folder that others cannot put anything into.
Status MakeFolder(const std::string& folder, mode_t mode) {
  if (::mkdir(folder.c_str(), mode) != 0 && errno != EEXIST) {
    return Error(ErrorCode::kUnavailable, fmt::format("cannot make {}: {}", Escape(folder), Because(errno)));
  }
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & S_IWOTH) != 0) {
    return Error(ErrorCode::kPermissionDenied,
                 fmt::format("{} is not a folder of ours alone; remove it, or name the socket by its path",
                             Escape(folder)));
  }
  return OkStatus();
}

// Whether only we, or root, could have put something into it: a client that finds a node by its name must not
// find an impostor.
bool IsTrusted(const std::string& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         (status.st_uid == ::geteuid() || status.st_uid == 0) && (status.st_mode & S_IWOTH) == 0;
}

bool IsSocket(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

Result<std::string> PathToServe(const std::string& node) {
  if (IsPath(node)) return node;
  if (!IsName(node)) return BadName(node);
  std::string folder = SessionFolder();
  mode_t mode = 0700;
  if (folder.empty() && ::geteuid() == 0) {
    folder = kSystemFolder;
    mode = 0755;
  } else if (folder.empty()) {
    folder = UserFolder();
  }
  if (Status made = MakeFolder(folder, mode); !made.ok()) return made.error();
  return fmt::format("{}/{}.sock", folder, node);
}

Result<std::string> PathToReach(const std::string& node) {
  if (IsPath(node)) return node;
  if (!IsName(node)) return BadName(node);
  for (const std::string& folder : {SessionFolder(), std::string(kSystemFolder), UserFolder()}) {
    if (folder.empty() || !IsTrusted(folder)) continue;
    std::string path = fmt::format("{}/{}.sock", folder, node);
    if (IsSocket(path)) return path;
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("there is no memory node \"{}\" on this machine; start its daemon, or "
                           "name its socket by path",
                           node));
}

Result<Descriptor> ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the path of a socket has at most {} characters: {}",
                             sizeof address.sun_path - 1, Escape(path)));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor socket = Descriptor::From([] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); });
  if (!socket.open()) {
    return Error(ErrorCode::kUnavailable, fmt::format("cannot make a socket: {}", Because(errno)));
  }
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return socket;
  switch (errno) {
    case ENOENT:
    case ENOTDIR:
      return Error(ErrorCode::kNotFound,
                   fmt::format("there is no memory node at {}; start its daemon", Escape(path)));
    case ECONNREFUSED:
    case EPROTOTYPE:
      return Error(
          ErrorCode::kUnavailable,
          fmt::format("no daemon serves {}; it has ended, and its socket was left behind; start it again",
                      Escape(path)));
    case EACCES:
    case EPERM:
      return Error(ErrorCode::kPermissionDenied,
                   fmt::format("{} is another user's; ask for its group", Escape(path)));
    default:
      return Error(ErrorCode::kUnavailable,
                   fmt::format("cannot connect to {}: {}", Escape(path), Because(errno)));
  }
}

bool Send(int socket, std::span<const std::byte> head, std::span<const std::byte> body, Wait wait,
          std::span<const int> descriptors) {
  std::array<iovec, 2> parts = {iovec{const_cast<std::byte*>(head.data()), head.size()},
                                iovec{const_cast<std::byte*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = body.empty() ? 1 : 2;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  const int flags = MSG_NOSIGNAL | (wait == Wait::kNo ? MSG_DONTWAIT : 0);
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &message, flags);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(head.size() + body.size());
}

Received Receive(int socket, std::span<std::byte> into, Wait wait) {
  iovec part{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const int flags = MSG_CMSG_CLOEXEC | (wait == Wait::kNo ? MSG_DONTWAIT : 0);
  // Descriptors are expected only without waiting, which would delay forks for long.
  std::optional<ForkDelay> delay;
  if (wait == Wait::kNo) delay.emplace();
  ssize_t bytes = -1;
  do {
    bytes = ::recvmsg(socket, &message, flags);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.kind = Received::Kind::kNothing};
    if (errno == ECONNRESET || errno == EPIPE) return {.kind = Received::Kind::kEnd};
    return {.kind = Received::Kind::kBroken};
  }

  Received received{.kind = Received::Kind::kMessage, .bytes = static_cast<size_t>(bytes)};
  received.descriptors.reserve(kMaxDescriptors);  // none is moved while forks are delayed
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of != nullptr;
       part_of = CMSG_NXTHDR(&message, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part_of) + i * sizeof(int), sizeof number);
      if (delay.has_value()) {
        received.descriptors.emplace_back(number, *delay);
      } else {
        received.descriptors.emplace_back(number);
      }
    }
  }
  // An empty message looks like the end, and neither side sends one.
  if (bytes == 0) received.kind = Received::Kind::kEnd;
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) received.kind = Received::Kind::kBroken;
  return received;
}

bool AwaitMessage(int socket, int milliseconds) {
  pollfd wanted{.fd = socket, .events = POLLIN, .revents = 0};
  int ready = -1;
  do {
    ready = ::poll(&wanted, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool IsQuiet(int socket) {
  std::byte byte;
  const ssize_t bytes = ::recv(socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

}  // namespace farside::fabric::shm
