#include "bench/peers/stream.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

namespace farside::peers {
namespace {

Error SocketError(std::string_view what, int number) {
  return Error(ErrorCode::kUnavailable, fmt::format("{}: {}", what, std::strerror(number)));
}

int ConnectUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made >= 0 && ::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int number = errno;
    ::close(made);
    errno = number;
    return -1;
  }
  return made;
}

int ConnectTcp(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (made >= 0 && (::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
                    ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)) {
    const int number = errno;
    ::close(made);
    errno = number;
    return -1;
  }
  return made;
}

}  // namespace

std::string Endpoint::ToString() const { return path.empty() ? fmt::format("127.0.0.1:{}", port) : path; }

Result<Stream> Stream::Connect(const Endpoint& endpoint) {
  const int made = endpoint.path.empty() ? ConnectTcp(endpoint.port) : ConnectUnix(endpoint.path);
  if (made < 0) return SocketError("cannot connect to " + endpoint.ToString(), errno);
  Stream stream(made);
  const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  if (::setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
    return SocketError("cannot set a timeout", errno);
  }
  return stream;
}

Stream::~Stream() {
  if (socket_ >= 0) ::close(socket_);
}

Result<size_t> Stream::Send(std::string_view bytes) {
  while (true) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return SocketError("cannot send", errno);
  }
}

Result<bool> Stream::AwaitEither() {
  pollfd watched{.fd = socket_, .events = POLLIN | POLLOUT, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&watched, 1, kPatienceSeconds * 1000);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) errno = ETIMEDOUT;
  if (ready <= 0) return SocketError("cannot send", errno);
  return (watched.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

Result<size_t> Stream::Receive(char* to, size_t room, Wait wait) {
  if (wait == Wait::kSpin) return Spin(to, room);
  while (true) {
    const ssize_t got = ::recv(socket_, to, room, 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return Error(ErrorCode::kUnavailable, "the server has closed the connection");
    if (errno != EINTR) return SocketError("cannot receive", errno);
  }
}

Result<size_t> Stream::Spin(char* to, size_t room) {
  constexpr int kLooksPerGlance = 1024;  // at the clock
  const SteadyClock clock;
  const Nanos deadline = clock.Now() + std::chrono::seconds(kPatienceSeconds);
  do {
    for (int look = 0; look < kLooksPerGlance; ++look) {
      const ssize_t got = ::recv(socket_, to, room, MSG_DONTWAIT);
      if (got > 0) return static_cast<size_t>(got);
      if (got == 0) return Error(ErrorCode::kUnavailable, "the server has closed the connection");
      if (errno != EAGAIN && errno != EINTR) return SocketError("cannot receive", errno);
    }
  } while (clock.Now() < deadline);
  return SocketError("cannot receive", ETIMEDOUT);
}

void Inbox::Consume(size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

Status Inbox::Fill(Stream& stream, Wait wait) {
  if (end_ == bytes_.size()) {
    if (begin_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    } else {
      if (bytes_.size() >= kMostBytes) return Error(ErrorCode::kCorrupt, "an answer is too long");
      bytes_.resize(std::min(kMostBytes, std::max<size_t>(bytes_.size() * 2, 4096)));
    }
  }
  const Result<size_t> got = stream.Receive(bytes_.data() + end_, bytes_.size() - end_, wait);
  if (!got.ok()) return got.error();
  end_ += *got;
  return OkStatus();
}

}  // namespace farside::peers
