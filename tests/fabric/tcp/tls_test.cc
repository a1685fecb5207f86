// TLS on both sides: which clients come in, which are refused and why, and which may only read.
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

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
  const auto fabric = TestNode::Open(ClientOf(node, authority.Client({.unit = "read-only"})));
  EXPECT_TRUE(fabric->read_only());
  const auto client = ConnectTo(*fabric);
  // Expect that it reads, and changes nothing.
  std::optional<ErrorCode> error;
  ASSERT_TRUE(fabric::Run(*client, ReadThenAdd(*client, error)).ok());
  EXPECT_EQ(error, ErrorCode::kPermissionDenied);
  EXPECT_EQ(node.Word(0), 0u);
  // Expect that other units mean nothing.
  const auto writer = TestNode::Open(ClientOf(node, authority.Client({.unit = "read-only-not"})));
  EXPECT_FALSE(writer->read_only());
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
