// A connected socket that does not block, in plain text or with TLS over it. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/tls.h"

namespace farside::fabric::tcp {

class Transport {
 public:
  enum class Outcome : uint8_t {
    kMoved,      // some bytes
    kWantRead,   // nothing now; again when the socket can be read
    kWantWrite,  // nothing now; again when it can be written
    kEnd,        // the peer sends no more
    kBroken,     // see failure()
  };
  struct Moved {
    Outcome outcome;
    size_t bytes = 0;
  };

  Transport() = default;
  explicit Transport(Descriptor socket) : socket_(std::move(socket)) {}
  Transport(Descriptor socket, SslPtr ssl) : socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  int fd() const { return socket_.get(); }
  bool valid() const { return socket_.open(); }
  bool secure() const { return ssl_ != nullptr; }
  ssl_st* ssl() const { return ssl_.get(); }
  // Whether what came last was sent by a thread of this machine that ran on the processor of the caller. Then
  // looking for more, instead of sleeping, keeps that thread from sending it.
  bool PeerSharesProcessor() const;

  // With TLS, until it is kMoved; without, it is so at once.
  Outcome Handshake();
  // Goes on in plain text, after a handshake that failed and was told to the peer.
  void ForgetTls() { ssl_.reset(); }
  // `into` and `from` are not empty.
  Moved Receive(std::span<std::byte> into);
  Moved Send(std::span<const std::byte> from);
  // Receives up to kDiscarded bytes and forgets them, in plain text or not.
  Moved Discard();
  static constexpr size_t kDiscarded = size_t{64} << 10;
  // Says that nothing more will be sent.
  void ShutdownSend();
  void Close();

  // Why it is broken, for people.
  const std::string& failure() const { return failure_; }

 private:
  Moved ReceivePlain(std::span<std::byte> into, int flags = 0);
  Moved SendPlain(std::span<const std::byte> from);
  Moved ReceiveTls(std::span<std::byte> into);
  Moved SendTls(std::span<const std::byte> from);
  Moved TlsOutcome(int result);

  Descriptor socket_;
  SslPtr ssl_;  // dies before its socket
  std::string failure_;
};

inline Transport::Moved Transport::Receive(std::span<std::byte> into) {
  return ssl_ == nullptr ? ReceivePlain(into) : ReceiveTls(into);
}
inline Transport::Moved Transport::Send(std::span<const std::byte> from) {
  return ssl_ == nullptr ? SendPlain(from) : SendTls(from);
}

}  // namespace farside::fabric::tcp
