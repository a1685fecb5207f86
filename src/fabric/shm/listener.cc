#include "fabric/shm/listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside::fabric::shm {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSoPeerPidfd = 77;   // SO_PEERPIDFD of Linux 6.5, and
constexpr int kSoPassRights = 83;  // SO_PASSRIGHTS of Linux 6.16: older headers do not name them

std::string LockName(const std::string& path) { return path + ".lock"; }

Error Cannot(std::string_view what, const std::string& path, int error) {
  const bool denied = error == EACCES || error == EPERM || error == EROFS;
  return Error(denied ? ErrorCode::kPermissionDenied : ErrorCode::kUnavailable,
               fmt::format("cannot {} {}: {}", what, Escape(path), std::generic_category().message(error)));
}

// The lock of a path. Its holder removes the name before it unlocks, so the next holder must check that the
// file that it locked still has the name.
Result<Descriptor> Lock(const std::string& path) {
  const std::string name = LockName(path);
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Descriptor file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.open()) return Cannot("make", name, errno);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return Cannot("lock", name, errno);
      return Error(
          ErrorCode::kAlreadyExists,
          fmt::format("{} is served by another daemon; choose another name, or stop that one", Escape(path)));
    }
    struct stat locked {};
    struct stat named {};
    if (::fstat(file.get(), &locked) != 0) return Cannot("look at", name, errno);
    if (::stat(name.c_str(), &named) == 0 && named.st_ino == locked.st_ino && named.st_dev == locked.st_dev) {
      return file;
    }
  }
  return Error(ErrorCode::kUnavailable, fmt::format("cannot get hold of {}", Escape(name)));
}

Status RemoveStale(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return OkStatus();
  if (!S_ISSOCK(status.st_mode)) {
    return Error(ErrorCode::kAlreadyExists,
                 fmt::format("{} exists and is no socket; choose another path", Escape(path)));
  }
  if (::unlink(path.c_str()) != 0) return Cannot("replace", path, errno);
  return OkStatus();
}

}  // namespace

Result<Listener> Listener::Open(const std::string& path, std::optional<gid_t> group) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("the path of a socket has 1 to {} characters: {}",
                                                          sizeof address.sun_path - 1, Escape(path)));
  }
  std::memcpy(address.sun_path, path.data(), path.size());

  Result<Descriptor> lock = Lock(path);
  if (!lock.ok()) return lock.error();
  if (Status removed = RemoveStale(path); !removed.ok()) {
    ::unlink(LockName(path).c_str());
    return removed.error();
  }
  Listener listener(path, group, std::move(*lock));
  listener.socket_ = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket_.open()) return Cannot("make a socket at", path, errno);
  // Connections inherit it. Older kernels have no such option, and pass descriptors on (server.cc).
  const int none = 0;
  static_cast<void>(::setsockopt(listener.socket_.get(), SOL_SOCKET, kSoPassRights, &none, sizeof none));
  if (::bind(listener.socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Cannot("make a socket at", path, errno);
  }
  // No client can connect before it listens, so the modes are in place in time.
  if (group.has_value() && ::lchown(path.c_str(), static_cast<uid_t>(-1), *group) != 0) {
    return Cannot("give its group to", path, errno);
  }
  if (::chmod(path.c_str(), group.has_value() ? 0660 : 0600) != 0) {
    return Cannot("set the permissions of", path, errno);
  }
  if (::listen(listener.socket_.get(), kBacklog) != 0) return Cannot("listen at", path, errno);
  return listener;
}

Listener::~Listener() {
  if (!lock_.open()) return;  // moved from
  if (socket_.open()) ::unlink(path_.c_str());
  ::unlink(LockName(path_).c_str());
}

Descriptor Listener::Accept() const {
  return Descriptor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

std::optional<Peer> Listener::PeerOf(const Descriptor& connection) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return std::nullopt;
  return Peer{credentials.pid, credentials.uid, credentials.gid};
}

bool Listener::Admits(const Descriptor& connection, const Peer& peer) const {
  if (peer.uid == 0 || peer.uid == ::geteuid()) return true;
  if (!group_.has_value()) return false;
  if (peer.gid == *group_) return true;
  std::vector<gid_t> groups(65536);  // the most that a process can be in
  auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) != 0) return false;
  groups.resize(bytes / sizeof(gid_t));
  return std::find(groups.begin(), groups.end(), *group_) != groups.end();
}

// By number, it is the right process as long as the connection has not ended: the process that connected is
// still there.
Descriptor Listener::ProcessOf(const Descriptor& connection, const Peer& peer) {
  int descriptor = -1;
  socklen_t bytes = sizeof descriptor;
  if (::getsockopt(connection.get(), SOL_SOCKET, kSoPeerPidfd, &descriptor, &bytes) == 0) {
    return Descriptor(descriptor);
  }
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
}

}  // namespace farside::fabric::shm
