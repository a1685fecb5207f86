#include "pool/region/url.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace farside::pool {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kGiB = 1024 * kMiB;

const std::string kForms =
    "embedded:?size=1GiB, file:PATH?size=1GiB, pmem:PATH?size=1GiB, shm:NAME or tcp://HOST:PORT";

std::string ErrorOf(std::string_view url) {
  const Result<PoolUrl> parsed = ParseUrl(url);
  return parsed.ok() ? "it was accepted" : parsed.error().ToString();
}

TEST(PoolUrl, IsToldFromOtherWordsByItsScheme) {
  for (const char* url : {"embedded:", "file:", "file:a", "pmem:a", "shm:a,b", "tcp://a:1", "tcp:wrong"})
    EXPECT_TRUE(HasUrlScheme(url)) << url;
  for (const char* word : {"", "users", "file", "files:a", "pool.farside", ":", "a:file:"})
    EXPECT_FALSE(HasUrlScheme(word)) << word;
}

TEST(PoolUrl, Embedded) {
  const PoolUrl plain = *ParseUrl("embedded:");
  EXPECT_EQ(plain.kind, PoolUrl::Kind::kEmbedded);
  EXPECT_EQ(plain.size, 256 * kMiB);
  EXPECT_EQ(plain.nodes, 1u);

  const PoolUrl sized = *ParseUrl("embedded:?size=1GiB");
  EXPECT_EQ(sized.size, kGiB);
  EXPECT_EQ(sized.nodes, 1u);

  for (const char* url : {"embedded:?size=64MiB&nodes=3", "embedded:?nodes=3&size=64MiB"}) {
    const PoolUrl several = *ParseUrl(url);
    EXPECT_EQ(several.size, 64 * kMiB);
    EXPECT_EQ(several.nodes, 3u);
  }
  EXPECT_EQ(ParseUrl("embedded:?nodes=16")->nodes, 16u);
}

TEST(PoolUrl, File) {
  const PoolUrl existing = *ParseUrl("file:pools/a.farside");
  EXPECT_EQ(existing.kind, PoolUrl::Kind::kFile);
  EXPECT_EQ(existing.path, "pools/a.farside");
  EXPECT_FALSE(existing.size.has_value());
  EXPECT_EQ(existing.nodes, 1u);

  const PoolUrl made = *ParseUrl("file:/var/lib/a:b&c=d%20e?size=4096&nodes=1");
  EXPECT_EQ(made.path, "/var/lib/a:b&c=d%20e");
  EXPECT_EQ(made.size, 4096u);
  EXPECT_EQ(ParseUrl("file:///var/lib/pool")->path,
            "///var/lib/pool");  // three slashes are one, to the kernel
}

TEST(PoolUrl, Pmem) {
  const PoolUrl made = *ParseUrl("pmem:/mnt/pmem/a?size=1GiB");
  EXPECT_EQ(made.kind, PoolUrl::Kind::kPmem);
  EXPECT_EQ(made.path, "/mnt/pmem/a");
  EXPECT_EQ(made.size, kGiB);
  EXPECT_TRUE(made.in_file());
  EXPECT_FALSE(made.remote());
  EXPECT_EQ(ErrorOf("pmem:"), "kInvalidArgument: pmem: needs a path, as in pmem:pool.farside?size=1GiB");
  EXPECT_EQ(ErrorOf("pmem:a?nodes=2"),
            "kInvalidArgument: a file is one node, but nodes=2 is asked for; leave it out");
  EXPECT_EQ(ErrorOf("pmem:a?sync=no"),
            "kInvalidArgument: \"sync\" is not a parameter of this sort of pool URL; there are size, nodes");
}

TEST(PoolUrl, Shm) {
  const PoolUrl one = *ParseUrl("shm:pool");
  EXPECT_EQ(one.kind, PoolUrl::Kind::kShm);
  EXPECT_EQ(one.names, std::vector<std::string>{"pool"});
  EXPECT_TRUE(one.remote());
  const PoolUrl two = *ParseUrl("shm:a,/run/b.sock");
  EXPECT_EQ(two.names, (std::vector<std::string>{"a", "/run/b.sock"}));
  EXPECT_EQ(two.nodes, 2u);

  for (const char* url : {"shm:", "shm:a,", "shm:,a", "shm:a,,b"}) {
    EXPECT_EQ(ErrorOf(url),
              "kInvalidArgument: the name of a node is missing; write shm:NAME or shm:NAME,NAME");
  }
  EXPECT_EQ(ErrorOf("shm:a,b,a"), "kInvalidArgument: node a is named twice");
  EXPECT_EQ(ErrorOf("shm:a?size=1GiB"),
            "kInvalidArgument: \"size\" is not a parameter of this sort of pool URL");
  EXPECT_EQ(ErrorOf("shm:a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"),
            "kInvalidArgument: a pool has at most 16 nodes");
}

TEST(PoolUrl, Tcp) {
  const PoolUrl one = *ParseUrl("tcp://127.0.0.1:7700");
  EXPECT_EQ(one.kind, PoolUrl::Kind::kTcp);
  EXPECT_EQ(one.names, std::vector<std::string>{"127.0.0.1:7700"});
  EXPECT_FALSE(one.insecure);
  EXPECT_EQ(ParseUrl("tcp://[::1]:7700")->names, std::vector<std::string>{"[::1]:7700"});

  const PoolUrl tls = *ParseUrl("tcp://a:7700,b:7701?ca=ca.pem&cert=c.pem&key=c.key");
  EXPECT_EQ(tls.names, (std::vector<std::string>{"a:7700", "b:7701"}));
  EXPECT_EQ(tls.nodes, 2u);
  EXPECT_EQ(tls.ca, "ca.pem");
  EXPECT_EQ(tls.cert, "c.pem");
  EXPECT_EQ(tls.key, "c.key");
  EXPECT_TRUE(ParseUrl("tcp://a:7700?insecure=yes")->insecure);
  EXPECT_FALSE(ParseUrl("tcp://a:7700?insecure=no")->insecure);

  EXPECT_EQ(ErrorOf("tcp:a:7700"), "kInvalidArgument: two slashes follow tcp:, as in tcp://127.0.0.1:7700");
  for (const char* name : {"a", ":7700", "a:", "a:0", "a:65536", "a:7x", "a:-1"}) {
    EXPECT_EQ(ErrorOf(std::string("tcp://") + name),
              std::string("kInvalidArgument: \"") + name +
                  "\" is not a host and a port; write 127.0.0.1:7700, [::1]:7700 or host:7700");
  }
  EXPECT_EQ(ErrorOf("tcp://a:1?ca=ca.pem"),
            "kInvalidArgument: TLS takes all three of ca, cert and key, as in "
            "?ca=ca.pem&cert=client.pem&key=client.key");
  EXPECT_EQ(ErrorOf("tcp://a:1?insecure=1"), "kInvalidArgument: insecure=\"1\" is neither yes nor no");
  EXPECT_EQ(ErrorOf("tcp://a:1?ca"), "kInvalidArgument: ca needs a value, as in ca=ca.pem");
}

TEST(PoolUrl, WhatOtherVersionsKnow) {
  EXPECT_EQ(ErrorOf("verbs://127.0.0.1:7700"),
            "kUnsupported: verbs: is not in this version; write " + kForms);
}

TEST(PoolUrl, WhatIsNone) {
  EXPECT_EQ(ErrorOf(""), "kInvalidArgument: the pool URL is empty; write " + kForms);
  EXPECT_EQ(ErrorOf("pool.farside"), "kInvalidArgument: \"pool.farside\" is not a pool URL; write " + kForms);
  for (const char* url : {":", "?size=1GiB", "embedded", "tcp", "http://example.org",
                          "Embedded:", " embedded:", "embedded?size=1GiB"}) {
    EXPECT_EQ(ErrorOf(url),
              std::string("kInvalidArgument: \"") + url + "\" is not a pool URL; write " + kForms);
  }
}

TEST(PoolUrl, NamesAndPaths) {
  EXPECT_EQ(ErrorOf("embedded:name?size=1GiB"),
            "kInvalidArgument: embedded: has no name, but \"name\" follows it; write embedded:?size=1GiB");
  EXPECT_EQ(ErrorOf("file:"), "kInvalidArgument: file: needs a path, as in file:pool.farside?size=1GiB");
  EXPECT_EQ(ErrorOf("file:?size=1GiB"),
            "kInvalidArgument: file: needs a path, as in file:pool.farside?size=1GiB");
  EXPECT_EQ(ErrorOf(std::string_view("file:a\0b", 8)),
            "kInvalidArgument: the path \"a\\x00b\" holds a zero byte");
  EXPECT_EQ(ErrorOf("file:a?nodes=2"),
            "kInvalidArgument: a file is one node, but nodes=2 is asked for; leave it out");
}

TEST(PoolUrl, Parameters) {
  EXPECT_EQ(ErrorOf("embedded:?sice=1GiB"),
            "kInvalidArgument: \"sice\" is not a parameter of this sort of pool URL; there are size, nodes");
  for (const char* url : {"embedded:?", "file:a?", "embedded:?size=1GiB&", "embedded:?&size=1GiB"}) {
    EXPECT_EQ(ErrorOf(url),
              "kInvalidArgument: \"\" is not a parameter of this sort of pool URL; there are size, nodes")
        << url;
  }
  EXPECT_EQ(ErrorOf("embedded:?size"), "kInvalidArgument: size needs a value, as in size=1GiB");
  EXPECT_EQ(ErrorOf("embedded:?nodes"), "kInvalidArgument: nodes needs a value, as in nodes=1");
  EXPECT_EQ(ErrorOf("file:a?size=1GiB&size=1GiB"), "kInvalidArgument: size is given twice");
  EXPECT_EQ(ErrorOf("embedded:?nodes=1&size=1GiB&nodes=1"), "kInvalidArgument: nodes is given twice");
}

TEST(PoolUrl, Values) {
  EXPECT_EQ(ErrorOf("embedded:?size=8Gib!"),
            "kInvalidArgument: \"8Gib!\" is not a size; write a whole number of bytes, KiB, MiB, GiB or TiB, "
            "such as "
            "4096 or 8GiB");
  EXPECT_NE(ErrorOf("embedded:?size="), "it was accepted");
  EXPECT_NE(ErrorOf("embedded:?size=-1"), "it was accepted");
  EXPECT_NE(ErrorOf("embedded:?size=99999999999TiB"), "it was accepted");
  for (const char* nodes : {"", "0", "-1", "+1", "3x", "0x3", "17", "4294967297", "1.0", " 1"}) {
    EXPECT_EQ(ErrorOf(std::string("embedded:?nodes=") + nodes),
              std::string("kInvalidArgument: nodes=\"") + nodes + "\" is not a number from 1 to 16");
  }
}

TEST(PoolUrl, AnyText_IsAcceptedOrRefusedInOneLine) {
  constexpr std::string_view kPieces[] = {"embedded",
                                          "file",
                                          "tcp",
                                          "shm",
                                          "//",
                                          ",",
                                          ":",
                                          "?",
                                          "&",
                                          "=",
                                          "size",
                                          "nodes",
                                          "1GiB",
                                          "3",
                                          "/",
                                          "a",
                                          "\n",
                                          "\xff",
                                          std::string_view("\0", 1)};
  Random random(0x0431);
  for (int i = 0; i < 100'000; ++i) {
    std::string url;
    for (uint64_t pieces = random.Below(12); pieces > 0; --pieces)
      url += kPieces[random.Below(std::size(kPieces))];
    const Result<PoolUrl> parsed = ParseUrl(url);
    if (parsed.ok()) continue;
    EXPECT_FALSE(parsed.error().message().empty());
    EXPECT_EQ(parsed.error().message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace farside::pool
