#include "fabric/tcp/endpoint.h"

#include <gtest/gtest.h>

namespace farside::fabric::tcp {
namespace {

TEST(TcpEndpoint, NetworkIsAnIPv4AddressOrTheFirstHalfOfAnIPv6Address) {
  const auto network = [](const char* host) {
    const auto addresses = Resolve({host, 1}, false);
    EXPECT_TRUE(addresses.ok());
    return addresses->front().Network();
  };
  // Expect that IPv4 addresses differ, also when mapped into IPv6, and IPv6 addresses of two sites.
  EXPECT_NE(network("10.0.0.1"), network("10.0.0.2"));
  EXPECT_EQ(network("10.0.0.1"), network("::ffff:10.0.0.1"));
  EXPECT_EQ(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2"));
  EXPECT_NE(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
}

}  // namespace
}  // namespace farside::fabric::tcp
