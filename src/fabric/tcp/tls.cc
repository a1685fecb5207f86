#include "fabric/tcp/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside::fabric::tcp {
namespace {

// ---- a BIO over a socket. OpenSSL's own uses write(2), which raises SIGPIPE when the peer has gone.

int SocketOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

bool WorthRetrying() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int SendBytes(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = send(SocketOf(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && WorthRetrying()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int ReceiveBytes(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t received = recv(SocketOf(bio), bytes, static_cast<size_t>(size), 0);
  if (received < 0 && WorthRetrying()) BIO_set_retry_read(bio);
  return static_cast<int>(received);
}

long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    BIO_meth_set_write(made, SendBytes);
    BIO_meth_set_read(made, ReceiveBytes);
    BIO_meth_set_ctrl(made, Control);
    return made;
  }();
  return method;
}

BIO* NewSocketBio(int socket) {
  BIO* const bio = BIO_new(SocketMethod());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));  // NOLINT: never followed
  BIO_set_init(bio, 1);
  return bio;
}

// ---- contexts

using Context = std::shared_ptr<SSL_CTX>;

Error Bad(std::string_view what, const std::string& file) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{} '{}' cannot be used: {}; see docs/security.md for how to make one", what, file,
                           TlsFailure(nullptr)));
}

// A side of a connection, by what its certificate must be for.
struct Side {
  uint32_t usage;  // as X509_get_extended_key_usage spells it
  const char* name;
  const char* usage_name;
};
constexpr Side kNode{XKU_SSL_SERVER, "a node", "serverAuth"};
constexpr Side kClient{XKU_SSL_CLIENT, "a client", "clientAuth"};

// OpenSSL itself takes a certificate without any usages to be for all of them.
bool IsFor(X509* certificate, const Side& side) {
  const uint32_t usages = X509_get_extended_key_usage(certificate);
  return usages != UINT32_MAX && (usages & side.usage) != 0;
}

// Called by OpenSSL for each certificate of a chain, the peer's own last, with what it thinks of it.
int CheckPeer(int good, X509_STORE_CTX* chain) {
  if (good != 1 || X509_STORE_CTX_get_error_depth(chain) != 0) return good;
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (IsFor(X509_STORE_CTX_get_current_cert(chain), SSL_is_server(ssl) != 0 ? kClient : kNode)) return 1;
  X509_STORE_CTX_set_error(chain, X509_V_ERR_INVALID_PURPOSE);
  return 0;
}

// The other side would refuse it, with an error that is harder to understand.
Status CheckOwn(SSL_CTX* context, const std::string& file, const Side& side) {
  if (IsFor(SSL_CTX_get0_certificate(context), side)) return OkStatus();
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the certificate '{}' is not for {}: it lacks the extended key usage {}; see "
                           "docs/security.md for how to make one",
                           file, side.name, side.usage_name));
}

Result<Context> NewContext(const SSL_METHOD* method, const Side& side, const std::string& certificate,
                           const std::string& key, const std::string& ca) {
  ERR_clear_error();
  const Context context(SSL_CTX_new(method), SSL_CTX_free);
  if (context == nullptr) return Error(ErrorCode::kUnavailable, "OpenSSL cannot be initialized");
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  SSL_CTX_set_mode(
      raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // A record that brings no bytes, such as a change of keys, ends the call that reads it. Else a peer that
  // sends nothing but those would keep the thread inside of OpenSSL for as long as it likes.
  SSL_CTX_clear_mode(raw, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_num_tickets(raw, 0);  // a client connects once and stays
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, CheckPeer);
  if (SSL_CTX_load_verify_locations(raw, ca.c_str(), nullptr) != 1) return Bad("the file of authorities", ca);
  if (certificate.empty() && key.empty()) return context;
  if (SSL_CTX_use_certificate_chain_file(raw, certificate.c_str()) != 1) {
    return Bad("the certificate", certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, key.c_str(), SSL_FILETYPE_PEM) != 1) return Bad("the key", key);
  if (SSL_CTX_check_private_key(raw) != 1) return Bad("the key (of another certificate?)", key);
  if (Status fits = CheckOwn(raw, certificate, side); !fits.ok()) return fits.error();
  return context;
}

SslPtr NewSession(SSL_CTX* context, int socket) {
  SslPtr ssl(SSL_new(context));
  BIO* const bio = ssl == nullptr ? nullptr : NewSocketBio(socket);
  if (bio == nullptr) return nullptr;
  SSL_set_bio(ssl.get(), bio, bio);
  return ssl;
}

bool IsNumeric(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  return inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), parsed.data()) == 1;
}

// ---- what a certificate says

// In UTF-8, whatever its encoding.
std::optional<std::string> TextOf(const ASN1_STRING* encoded) {
  unsigned char* text = nullptr;
  const int bytes = ASN1_STRING_to_UTF8(&text, encoded);
  if (bytes < 0) return std::nullopt;
  std::string copy(reinterpret_cast<const char*>(text), static_cast<size_t>(bytes));
  OPENSSL_free(text);
  return copy;
}

bool SaysReadOnly(std::string unit) {
  for (char& letter : unit) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  return unit.find("read-only") != std::string::npos;
}

}  // namespace

void SslFree::operator()(ssl_st* ssl) const { SSL_free(ssl); }

Result<TlsContext> TlsContext::ForServer(const ServerTls& tls) {
  Result<Context> context =
      NewContext(TLS_server_method(), kNode, tls.certificate_file, tls.key_file, tls.client_ca_file);
  if (!context.ok()) return context.error();
  return TlsContext(std::move(*context));
}

Result<TlsContext> TlsContext::ForClient(const ClientTls& tls) {
  Result<Context> context =
      NewContext(TLS_client_method(), kClient, tls.certificate_file, tls.key_file, tls.ca_file);
  if (!context.ok()) return context.error();
  TlsContext made(std::move(*context));
  made.verify_host_ = tls.verify_host;
  return made;
}

SslPtr TlsContext::Accept(int socket) const {
  SslPtr ssl = NewSession(context_.get(), socket);
  if (ssl != nullptr) SSL_set_accept_state(ssl.get());
  return ssl;
}

SslPtr TlsContext::Dial(int socket, const std::string& host) const {
  SslPtr ssl = NewSession(context_.get(), socket);
  if (ssl == nullptr) return nullptr;
  SSL_set_connect_state(ssl.get());
  const bool numeric = IsNumeric(host);
  if (!numeric) SSL_set_tlsext_host_name(ssl.get(), host.c_str());
  if (!verify_host_) return ssl;
  // What a certificate calls itself for people is no host: the subjectAltName alone counts.
  SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int set = numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str())
                          : SSL_set1_host(ssl.get(), host.c_str());
  return set == 1 ? std::move(ssl) : nullptr;
}

std::string TlsFailure(ssl_st* ssl) {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (ssl != nullptr) {
    if (const long verdict = SSL_get_verify_result(ssl); verdict != X509_V_OK) {
      return fmt::format("the certificate of the other side is not accepted: {}",
                         X509_verify_cert_error_string(verdict));
    }
  }
  if (error == 0) return "the connection was closed";
  if (ERR_SYSTEM_ERROR(error)) return "no such file, or it cannot be read";
  const char* const reason = ERR_reason_error_string(error);
  return reason != nullptr ? reason : fmt::format("OpenSSL error {:#x}", error);
}

// Whatever is not understood denies the right.
bool PeerMayWrite(ssl_st* ssl) {
  X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return false;  // never: certificates are required
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  bool may_write = false;
  int at = -1;
  while ((at = X509_NAME_get_index_by_NID(subject, NID_organizationalUnitName, at)) >= 0) {
    const std::optional<std::string> unit =
        TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (!unit.has_value() || SaysReadOnly(*unit)) return false;
    may_write |= *unit == "read-write";
  }
  return may_write;
}

std::string PeerName(ssl_st* ssl) {
  X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return {};
  std::array<char, 128> name{};
  const int bytes = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                                              static_cast<int>(name.size()));
  if (bytes <= 0) return {};
  return Escape(std::string_view(name.data(), static_cast<size_t>(bytes)));
}

}  // namespace farside::fabric::tcp
