// TLS 1.3 with certificates on both sides, by OpenSSL. A certificate is for a node or for a client, by its
// extended key usages (serverAuth, clientAuth); one that does not say so is refused by the other side.
#pragma once

#include <memory>
#include <string>

#include "farside/result.h"

struct ssl_st;      // OpenSSL's SSL
struct ssl_ctx_st;  // and SSL_CTX

namespace farside::fabric::tcp {

// All files are PEM.
struct ServerTls {
  std::string certificate_file;  // the node's own, with what connects it to its authority
  std::string key_file;
  std::string client_ca_file;  // signs the certificates of clients that may come in
};
struct ClientTls {
  std::string certificate_file;  // the client's own
  std::string key_file;
  std::string ca_file;      // signs the certificates of nodes
  bool verify_host = true;  // the node's certificate must name the dialled host, as subjectAltName
};

struct SslFree {
  void operator()(ssl_st* ssl) const;
};
using SslPtr = std::unique_ptr<ssl_st, SslFree>;

// Keys and rules that the connections of a server, or of a fabric, share. Safe from any thread.
class TlsContext {
 public:
  static Result<TlsContext> ForServer(const ServerTls& tls);
  static Result<TlsContext> ForClient(const ClientTls& tls);

  // A connection over a socket, which it does not own. Null if there is no memory for it.
  SslPtr Accept(int socket) const;
  // `host` is a name or an address.
  SslPtr Dial(int socket, const std::string& host) const;

 private:
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}

  std::shared_ptr<ssl_ctx_st> context_;
  bool verify_host_ = true;
};

// Why the last operation of OpenSSL on this thread failed, for people. Forgets it.
std::string TlsFailure(ssl_st* ssl);
// Whether the certificate of the peer has the organizational unit "read-write" in its subject, and none that
// says "read-only".
bool PeerMayWrite(ssl_st* ssl);
// The common name in the peer's certificate; empty if there is none.
std::string PeerName(ssl_st* ssl);

}  // namespace farside::fabric::tcp
