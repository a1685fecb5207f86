// The socket on which one daemon waits for clients; at most one daemon has the path.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/descriptor.h"
#include "farside/result.h"

namespace farside::fabric::shm {

// The process that connects, as the kernel names it.
struct Peer {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};

class Listener {
 public:
  // Makes the socket, for its owner alone, or also for `group`. kAlreadyExists if another daemon serves that
  // path; a socket that a dead daemon left behind is replaced. Which of both it is, a lock on PATH.lock
  // tells, which ends with its process.
  static Result<Listener> Open(const std::string& path, std::optional<gid_t> group);
  Listener(Listener&& other) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  const std::string& path() const { return path_; }
  int descriptor() const { return socket_.get(); }

  // A connection that waits to be accepted; not open if there is none, or if descriptors have run out
  // (`errno` tells).
  Descriptor Accept() const;
  // The process at the other end. Nothing if the kernel does not say.
  static std::optional<Peer> PeerOf(const Descriptor& connection);
  // The owner of the daemon, root, and the members of a group if one is given.
  bool Admits(const Descriptor& connection, const Peer& peer) const;
  // A descriptor of the process at the other end, which becomes readable when the process has ended; not open
  // on kernels that have no such thing.
  static Descriptor ProcessOf(const Descriptor& connection, const Peer& peer);

 private:
  Listener(std::string path, std::optional<gid_t> group, Descriptor lock)
      : path_(std::move(path)), group_(group), lock_(std::move(lock)) {}

  std::string path_;
  std::optional<gid_t> group_;
  Descriptor lock_;
  Descriptor socket_;
};

}  // namespace farside::fabric::shm
