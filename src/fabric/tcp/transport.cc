#include "fabric/tcp/transport.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

namespace farside::fabric::tcp {
namespace {

int Clamped(size_t bytes) {
  return static_cast<int>(std::min<size_t>(bytes, std::numeric_limits<int>::max()));
}

}  // namespace

// What goes to this machine itself is received on the processor of its sender. What comes from elsewhere is
// received where the network card interrupts, which says nothing.
bool Transport::PeerSharesProcessor() const {
  int processor = -1;
  socklen_t bytes = sizeof(processor);
  if (getsockopt(fd(), SOL_SOCKET, SO_INCOMING_CPU, &processor, &bytes) != 0 || processor != sched_getcpu())
    return false;
  SocketAddress peer;
  peer.bytes = sizeof(peer.storage);
  return getpeername(fd(), peer.get(), &peer.bytes) == 0 && peer.IsLoopback();
}

Transport::Moved Transport::ReceivePlain(std::span<std::byte> into, int flags) {
  while (true) {
    const ssize_t received = recv(fd(), into.data(), into.size(), flags);
    if (received > 0) return {Outcome::kMoved, static_cast<size_t>(received)};
    if (received == 0) return {Outcome::kEnd};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {Outcome::kWantRead};
    if (errno == EINTR) continue;
    failure_ = ErrnoText(errno);
    return {Outcome::kBroken};
  }
}

Transport::Moved Transport::SendPlain(std::span<const std::byte> from) {
  while (true) {
    const ssize_t sent = send(fd(), from.data(), from.size(), MSG_NOSIGNAL);
    if (sent >= 0) return {Outcome::kMoved, static_cast<size_t>(sent)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {Outcome::kWantWrite};
    if (errno == EINTR) continue;
    failure_ = ErrnoText(errno);
    return {Outcome::kBroken};
  }
}

// What TLS would make of them does not matter. MSG_TRUNC: a TCP socket drops them without copying them, so
// the buffer is never touched. It is there for the sanitizers, which take recv(2) at its word.
Transport::Moved Transport::Discard() {
  thread_local std::array<std::byte, kDiscarded> untouched;
  return ReceivePlain(untouched, MSG_TRUNC);
}

// OpenSSL has its own copy of the descriptor, which a child of fork may have given to something else.
Transport::Moved Transport::ReceiveTls(std::span<std::byte> into) {
  if (!valid()) return {Outcome::kBroken};
  ERR_clear_error();
  const int received = SSL_read(ssl_.get(), into.data(), Clamped(into.size()));
  if (received > 0) return {Outcome::kMoved, static_cast<size_t>(received)};
  return TlsOutcome(received);
}

Transport::Moved Transport::SendTls(std::span<const std::byte> from) {
  if (!valid()) return {Outcome::kBroken};
  ERR_clear_error();
  const int sent = SSL_write(ssl_.get(), from.data(), Clamped(from.size()));
  if (sent > 0) return {Outcome::kMoved, static_cast<size_t>(sent)};
  return TlsOutcome(sent);
}

Transport::Moved Transport::TlsOutcome(int result) {
  const int saved_errno = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return {Outcome::kWantRead};
    case SSL_ERROR_WANT_WRITE: return {Outcome::kWantWrite};
    case SSL_ERROR_ZERO_RETURN: return {Outcome::kEnd};
    case SSL_ERROR_SYSCALL:
      if (ERR_peek_error() == 0 && saved_errno != 0) {
        failure_ = ErrnoText(saved_errno);
        return {Outcome::kBroken};
      }
      break;
    default: break;
  }
  failure_ = TlsFailure(ssl_.get());
  return {Outcome::kBroken};
}

Transport::Outcome Transport::Handshake() {
  if (ssl_ == nullptr) return Outcome::kMoved;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  return result == 1 ? Outcome::kMoved : TlsOutcome(result).outcome;
}

void Transport::ShutdownSend() {
  if (!valid()) return;
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_.get()) == 1) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  shutdown(fd(), SHUT_WR);
}

void Transport::Close() {
  ssl_.reset();
  socket_.Close();
}

}  // namespace farside::fabric::tcp
