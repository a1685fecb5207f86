// TLS on both sides: which clients come in, which are refused and why, and which may only read.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/descriptor.h"
#include "fabric/tcp/connection.h"
#include "fabric/tcp/transport.h"
#include "tests/fabric/tcp/lone_connection.h"
#include "tests/fabric/tcp/loopback.h"
#include "tests/fabric/tcp/world.h"
#include "tests/support/certificates.h"

namespace farside::fabric::tcp {
namespace {

ServerOptions Secure(const ServerTls& tls) {
  ServerOptions options = OneThread();
  options.tls = tls;
  return options;
}

Options ClientOf(const TestNode& node, std::optional<ClientTls> tls) {
  Options options = node.ClientOptions();
  options.tls = std::move(tls);
  return options;
}

// Expects that a client is refused with an error that names the node and has `part` in it.
void ExpectRefused(const TestNode& node, std::optional<ClientTls> tls, const std::string& part) {
  const auto fabric = TcpFabric::Open(ClientOf(node, std::move(tls)));
  ASSERT_FALSE(fabric.ok());
  EXPECT_NE(fabric.error().message().find(node.address()), std::string::npos) << fabric.error().message();
  EXPECT_NE(fabric.error().message().find(part), std::string::npos) << fabric.error().message();
}

TEST(TcpTls, ClientWithACertificateIsServed) {
  // Given a node and a client whose certificates are of one authority.
  Certificates authority;
  TestNode node(4096, Secure(authority.Server()));
  const auto fabric = TestNode::Open(ClientOf(node, authority.Client({.name = "worker 7"})));
  const auto client = ConnectTo(*fabric);
  // Expect that it works, and that the node logs which client it serves.
  EXPECT_TRUE(fabric::Run(*client, AddTo(*client, At(0), 1)).ok());
  EXPECT_EQ(node.Word(0), 1u);
  EXPECT_EQ(node.log().Count("as 'worker 7'"), 1u);
}

TEST(TcpTls, ClientWithoutACertificateIsRefused) {
  // Given a client that has none. Expect that it is refused, with a line in the log.
  Certificates authority;
  TestNode node(4096, Secure(authority.Server()));
  ExpectRefused(node, ClientTls{.certificate_file = "", .key_file = "", .ca_file = authority.ca_file()},
                "certificate required");
  node.log().Await("no TLS with it");
}

TEST(TcpTls, CertificatesOfAnotherAuthorityAreRefused) {
  // Given two authorities. When the client's is of the other, or the node's. Expect that it is refused.
  Certificates ours;
  Certificates theirs;
  TestNode node(4096, Secure(ours.Server()));
  ClientTls client = theirs.Client();
  client.ca_file = ours.ca_file();
  ExpectRefused(node, client, "unknown ca");
  client = ours.Client();
  client.ca_file = theirs.ca_file();
  ExpectRefused(node, client, "certificate of the other side is not accepted");
}

TEST(TcpTls, CertificatesThatHaveExpiredAreRefused) {
  // Given a client, or a node, whose certificate has expired. Expect that the other refuses it.
  Certificates authority;
  const CertificateWanted expired_node{
      .name = "a node", .hosts = "IP:127.0.0.1", .valid_from = -7200, .valid_until = -3600};
  const CertificateWanted expired_client{.valid_from = -7200, .valid_until = -3600};
  TestNode good(4096, Secure(authority.Server()));
  ExpectRefused(good, authority.Client(expired_client), "expired");
  TestNode old(4096, Secure(authority.Server(expired_node)));
  ExpectRefused(old, authority.Client(), "expired");
}

TEST(TcpTls, ANodeMustBeTheOneThatWasDialled) {
  // Given a node whose certificate is for another host.
  Certificates authority;
  TestNode node(4096, Secure(authority.Server({.name = "a node", .hosts = "IP:10.0.0.1,DNS:elsewhere"})));
  // Expect that it is refused, unless the client does not care.
  ExpectRefused(node, authority.Client(), "mismatch");
  ClientTls careless = authority.Client();
  careless.verify_host = false;
  EXPECT_TRUE(TcpFabric::Open(ClientOf(node, careless)).ok());
}

TEST(TcpTls, HostsAreVerifiedByNameToo) {
  // Given a node whose certificate has a name and no address. Expect that it is accepted by that name only.
  Certificates authority;
  TestNode node(4096, Secure(authority.Server({.name = "a node", .hosts = "DNS:localhost"})));
  ExpectRefused(node, authority.Client(), "mismatch");
  Options options = ClientOf(node, authority.Client());
  options.addresses = {"localhost:" + std::to_string(node.port())};
  EXPECT_TRUE(TcpFabric::Open(options).ok());
}

TEST(TcpTls, TheCommonNameOfANodeIsNoHost) {
  // Given a node whose certificate has the name of its host as its common name, and names no host otherwise,
  // or only an address. Expect that it is not accepted by that name.
  Certificates authority;
  for (const std::string hosts : {"", "IP:127.0.0.1"}) {
    TestNode node(4096, Secure(authority.Server({.name = "localhost", .hosts = hosts})));
    Options options = ClientOf(node, authority.Client());
    options.addresses = {"localhost:" + std::to_string(node.port())};
    const auto fabric = TcpFabric::Open(options);
    ASSERT_FALSE(fabric.ok()) << "'" << hosts << "'";
    EXPECT_NE(fabric.error().message().find("mismatch"), std::string::npos) << fabric.error().message();
  }
}

// One side of ours, and a stranger that uses OpenSSL as it likes.
class Meeting {
 public:
  Meeting(const TlsContext& ours, bool we_accept, const Certificates::Files& stranger,
          const std::string& ca_file)
      : context_(SSL_CTX_new(we_accept ? TLS_client_method() : TLS_server_method()), SSL_CTX_free) {
    std::array<int, 2> sockets{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()), 0);
    Descriptor mine(sockets[0]);
    theirs_ = Descriptor(sockets[1]);
    SSL_CTX_use_certificate_file(context_.get(), stranger.certificate.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context_.get(), stranger.key.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_load_verify_locations(context_.get(), ca_file.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), we_accept ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
    peer_.reset(SSL_new(context_.get()));
    SSL_set_fd(peer_.get(), theirs_.get());
    if (we_accept) {
      SSL_set_connect_state(peer_.get());
    } else {
      SSL_set_accept_state(peer_.get());
    }
    SslPtr ssl = we_accept ? ours.Accept(mine.get()) : ours.Dial(mine.get(), "127.0.0.1");
    transport_ = Transport(std::move(mine), std::move(ssl));
  }

  // Empty if our side has accepted the stranger, else why it has not.
  std::string Handshake() {
    Transport::Outcome outcome = Transport::Outcome::kWantRead;
    for (int step = 0; step < 100 && outcome == Transport::Outcome::kWantRead; ++step) {
      SSL_do_handshake(peer_.get());
      ERR_clear_error();
      outcome = transport_.Handshake();
    }
    if (outcome == Transport::Outcome::kMoved) return "";
    return transport_.failure().empty() ? "it did not end" : transport_.failure();
  }

  SSL* peer() { return peer_.get(); }
  Transport& transport() { return transport_; }
  int Unread() const {
    int unread = 0;
    EXPECT_EQ(ioctl(transport_.fd(), FIONREAD, &unread), 0);
    return unread;
  }

 private:
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  Descriptor theirs_;
  SslPtr peer_;
  Transport transport_;
};

std::string WhyNot(const TlsContext& ours, bool we_accept, const Certificates::Files& stranger,
                   const std::string& ca_file) {
  return Meeting(ours, we_accept, stranger, ca_file).Handshake();
}

TEST(TcpTls, ACertificateServesOneSideOnly) {
  // Given a node, a client, and strangers with certificates of their authority for various usages.
  Certificates authority;
  const auto node = TlsContext::ForServer(authority.Server());
  const auto client = TlsContext::ForClient(authority.Client());
  ASSERT_TRUE(node.ok());
  ASSERT_TRUE(client.ok());
  const auto why_not = [&](bool as_client, const std::string& usage) {
    const Certificates::Files files = authority.Issue({.hosts = "IP:127.0.0.1", .usage = usage}, "");
    return WhyNot(as_client ? *node : *client, as_client, files, authority.ca_file());
  };
  // Expect that a node accepts those for clients, and a client those for nodes.
  EXPECT_EQ(why_not(/*as_client=*/true, "clientAuth"), "");
  EXPECT_EQ(why_not(/*as_client=*/true, "serverAuth,clientAuth"), "");
  EXPECT_EQ(why_not(/*as_client=*/false, "serverAuth"), "");
  // Expect that no other is accepted; least of all one that does not say what it is for.
  for (const std::string usage : {"serverAuth", "", "codeSigning", "anyExtendedKeyUsage"}) {
    EXPECT_NE(why_not(/*as_client=*/true, usage).find("purpose"), std::string::npos)
        << "'" << usage << "': '" << why_not(true, usage) << "'";
  }
  for (const std::string usage : {"clientAuth", "", "codeSigning", "anyExtendedKeyUsage"}) {
    EXPECT_NE(why_not(/*as_client=*/false, usage).find("purpose"), std::string::npos)
        << "'" << usage << "': '" << why_not(false, usage) << "'";
  }
}

TEST(TcpTls, ACertificateForTheOtherSideIsNamedBeforeItIsUsed) {
  // Given a node with the certificate of a client, a client with that of a node, and both with one that says
  // nothing. Expect errors that name the file and what it lacks.
  Certificates authority;
  for (const std::string usage : {"clientAuth", ""}) {
    const ServerTls tls = authority.Server({.hosts = "IP:127.0.0.1", .usage = usage});
    const auto node = TlsContext::ForServer(tls);
    ASSERT_FALSE(node.ok());
    EXPECT_NE(node.error().message().find(tls.certificate_file), std::string::npos);
    EXPECT_NE(node.error().message().find("serverAuth"), std::string::npos) << node.error().message();
  }
  for (const std::string usage : {"serverAuth", ""}) {
    const ClientTls tls = authority.Client({.usage = usage});
    const auto client = TlsContext::ForClient(tls);
    ASSERT_FALSE(client.ok());
    EXPECT_NE(client.error().message().find(tls.certificate_file), std::string::npos);
    EXPECT_NE(client.error().message().find("clientAuth"), std::string::npos) << client.error().message();
  }
}

TEST(TcpTls, PlainTextAndTlsDoNotMeet) {
  // Given a node with TLS and one without. When a client of the other sort comes. Expect that it is told.
  Certificates authority;
  TestNode secure(4096, Secure(authority.Server()));
  ExpectRefused(secure, std::nullopt, "if it expects TLS, give certificates");
  TestNode plain;
  ExpectRefused(plain, authority.Client(), "check the certificates and that it expects TLS");
}

Task<Done> ReadThenAdd(Client& client, std::optional<ErrorCode>& error) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Read<uint64_t>(At(0)));
  const auto added = co_await op.InOrder(Faa(At(0), 1)).Outcome();
  if (!added.ok()) error = added.error().code();
  co_await op.InOrder(Read<uint64_t>(At(0)));
  co_return Done{};
}

TEST(TcpTls, ACertificateForReadingOnlyReadsOnly) {
  // Given a client whose certificate has OU=read-only.
  Certificates authority;
  TestNode node(4096, Secure(authority.Server()));
  const auto fabric = TestNode::Open(ClientOf(node, authority.Client({.units = {"read-only"}})));
  EXPECT_TRUE(fabric->read_only());
  const auto client = ConnectTo(*fabric);
  // Expect that it reads, and changes nothing.
  std::optional<ErrorCode> error;
  ASSERT_TRUE(fabric::Run(*client, ReadThenAdd(*client, error)).ok());
  EXPECT_EQ(error, ErrorCode::kPermissionDenied);
  EXPECT_EQ(node.Word(0), 0u);
}

// "read" as BMPString: two bytes per letter.
std::string InTwoBytes(std::string_view text) {
  std::string wide;
  for (const char letter : text) {
    wide += '\0';
    wide += letter;
  }
  return wide;
}

TEST(TcpTls, TheRightToWriteIsExplicit) {
  Certificates authority;
  TestNode node(4096, Secure(authority.Server()));
  const auto writes = [&](const CertificateWanted& wanted) {
    return !TestNode::Open(ClientOf(node, authority.Client(wanted)))->read_only();
  };
  // Given certificates with the unit read-write, among others or in another encoding. Expect that they write.
  EXPECT_TRUE(writes({.units = {"read-write"}}));
  EXPECT_TRUE(writes({.units = {"engineering", "read-write"}}));
  EXPECT_TRUE(writes({.units = {InTwoBytes("read-write")}, .unit_encoding = V_ASN1_BMPSTRING}));
  // Given certificates that do not say so, or not in these letters. Expect that they read only.
  EXPECT_FALSE(writes({.units = {}}));
  for (const std::string unit : {"read-only", "Read-Only", "read-only ", "READ-ONLY", "readonly", "reader",
                                 "engineering", "Read-Write", "read-write ", "read-only, read-write"}) {
    EXPECT_FALSE(writes({.units = {unit}})) << "'" << unit << "'";
  }
  EXPECT_FALSE(writes({.units = {std::string("read-write\0", 11)}}));
  EXPECT_FALSE(writes({.units = {InTwoBytes("read-only")}, .unit_encoding = V_ASN1_BMPSTRING}));
  // Given certificates that say both. Expect that they read only.
  EXPECT_FALSE(writes({.units = {"read-write", "read-only"}}));
  EXPECT_FALSE(writes({.units = {" Read-Only", "read-write"}}));
}

TEST(TcpTls, TheNameInACertificateIsEscapedInTheLog) {
  // Given a client whose certificate has a name that would clear a terminal and fake a line.
  Certificates authority;
  TestNode node(4096, Secure(authority.Server()));
  const auto fabric = TestNode::Open(ClientOf(node, authority.Client({.name = "a\x1b[2J\nb"})));
  const auto client = ConnectTo(*fabric);
  // Expect printable letters.
  node.log().Await("as 'a\\x1b[2J\\x0ab'");
}

TEST(TcpTls, APeerThatOnlyChangesItsKeysDoesNotHoldUpTheThread) {
  // Given a client that has come in.
  Certificates authority;
  const auto node = TlsContext::ForServer(authority.Server());
  ASSERT_TRUE(node.ok());
  Meeting meeting(*node, /*we_accept=*/true, authority.Issue({.units = {"read-only"}}, "clientAuth"),
                  authority.ca_file());
  ASSERT_EQ(meeting.Handshake(), "");
  // When it changes its keys again and again. Expect that to receive does not go on for as long as it does.
  constexpr int kChanges = 64;
  for (int i = 0; i < kChanges; ++i) {
    ASSERT_EQ(SSL_key_update(meeting.peer(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(meeting.peer()), 1);
  }
  std::array<std::byte, 8> into{};
  EXPECT_EQ(meeting.transport().Receive(into).outcome, Transport::Outcome::kWantRead);
  EXPECT_GT(meeting.Unread(), 0);
  // When it sends something. Expect that it arrives.
  ASSERT_EQ(SSL_write(meeting.peer(), "farside", 7), 7);
  Transport::Moved moved{Transport::Outcome::kWantRead};
  for (int i = 0; i < kChanges && moved.outcome == Transport::Outcome::kWantRead; ++i) {
    moved = meeting.transport().Receive(into);
  }
  EXPECT_EQ(moved.outcome, Transport::Outcome::kMoved);
  EXPECT_EQ(moved.bytes, 7u);
}

TEST(TcpTls, APeerThatDoesNotReadWhatTlsTellsItIsWaitedForAndNotForEver) {
  // Given a client that has come in.
  Certificates authority;
  const auto context = TlsContext::ForServer(authority.Server());
  ASSERT_TRUE(context.ok());
  Meeting meeting(*context, /*we_accept=*/true, authority.Issue({}, "clientAuth"), authority.ca_file());
  ASSERT_EQ(meeting.Handshake(), "");
  ServerOptions options = OneThread();
  options.stall_timeout = std::chrono::seconds(10);
  LoneConnection connection(std::move(meeting.transport()), options);
  const wire::Hello hello = HelloAs(5);
  ASSERT_EQ(SSL_write(meeting.peer(), &hello, sizeof(hello)), static_cast<int>(sizeof(hello)));
  connection.Advance();
  ASSERT_EQ(connection->state(), Connection::State::kServing);
  EXPECT_FALSE(connection->HasDeadline());
  // When it asks the node to change its keys, again and again, and does not read that it does.
  for (int i = 0; i < 10000 && (connection->Interest() & EPOLLIN) != 0; ++i) {
    if (SSL_key_update(meeting.peer(), SSL_KEY_UPDATE_REQUESTED) == 1) SSL_do_handshake(meeting.peer());
    ERR_clear_error();
    connection.Advance();
  }
  // Expect that the node waits for it, and does not look at its socket over and over; and that it is late if
  // that lasts.
  ASSERT_EQ(connection->state(), Connection::State::kServing);
  EXPECT_EQ(connection->Interest(), uint32_t{EPOLLOUT});
  EXPECT_TRUE(connection->HasDeadline());
  EXPECT_FALSE(connection->IsLate(std::chrono::seconds(100)));
  EXPECT_TRUE(connection->IsLate(std::chrono::seconds(110)));
}

// Accepts one connection, and changes its keys for as long as the peer takes it. Says nothing else.
void ChangeKeysForEver(const LoopbackListener& listener, const ServerTls& tls) {
  const Descriptor socket = listener.Accept();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  SSL_CTX_free);
  SSL_CTX_use_certificate_file(context.get(), tls.certificate_file.c_str(), SSL_FILETYPE_PEM);
  SSL_CTX_use_PrivateKey_file(context.get(), tls.key_file.c_str(), SSL_FILETYPE_PEM);
  const SslPtr ssl(SSL_new(context.get()));
  // A BIO of ours, which raises no signal when the peer has gone.
  const auto ours = TlsContext::ForServer(tls);
  const SslPtr lender = ours->Accept(socket.get());
  BIO_up_ref(SSL_get_wbio(lender.get()));
  SSL_set_bio(ssl.get(), SSL_get_wbio(lender.get()), SSL_get_wbio(lender.get()));
  if (SSL_accept(ssl.get()) != 1) return;
  while (SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl.get()) == 1) {
  }
}

TEST(TcpTls, ANodeThatOnlyChangesItsKeysIsGivenUp) {
  // Given a node that never says Welcome, although something always comes from it.
  Certificates authority;
  const LoopbackListener listener;
  const ServerTls tls = authority.Server();
  const std::jthread node([&] { ChangeKeysForEver(listener, tls); });
  // When a client opens a pool there. Expect that it gives up.
  Options options;
  options.addresses = {listener.address()};
  options.tls = authority.Client();
  options.connect_timeout = std::chrono::milliseconds(500);
  const auto fabric = TcpFabric::Open(options);
  ASSERT_FALSE(fabric.ok());
  EXPECT_NE(fabric.error().message().find("did not answer"), std::string::npos) << fabric.error().message();
}

TEST(TcpTls, FilesThatCannotBeUsedAreNamed) {
  // Given options with files that do not exist, or do not belong together.
  Certificates authority;
  TestNode node;
  const auto message = [&node](const ServerTls& tls) {
    const auto server = Server::Listen(node.node(), Secure(tls), node.log().logger());
    EXPECT_FALSE(server.ok());
    return server.error().message();
  };
  // Expect errors that name the file.
  const ServerTls good = authority.Server();
  ServerTls bad = good;
  bad.certificate_file = "/nonexistent/node.pem";
  EXPECT_NE(message(bad).find("/nonexistent/node.pem"), std::string::npos) << message(bad);
  bad = good;
  bad.client_ca_file = "/nonexistent/ca.pem";
  EXPECT_NE(message(bad).find("/nonexistent/ca.pem"), std::string::npos) << message(bad);
  bad = good;
  bad.key_file = authority.Server().key_file;
  EXPECT_NE(message(bad).find(bad.key_file), std::string::npos) << message(bad);
}

}  // namespace
}  // namespace farside::fabric::tcp
