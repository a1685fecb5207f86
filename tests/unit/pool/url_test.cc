#include "pool/url.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/random.h"

namespace farside::pool {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kGiB = 1024 * kMiB;

std::string ErrorOf(std::string_view url) {
  const Result<PoolUrl> parsed = ParseUrl(url);
  return parsed.ok() ? "it was accepted" : parsed.error().ToString();
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

TEST(PoolUrl, WhatOtherVersionsKnow) {
  for (const char* url :
       {"shm:NAME", "tcp://127.0.0.1:7700", "tcp://a:1,b:2", "verbs://a:1", "pmem:/dev/dax0.0?size=1GiB"}) {
    const Result<PoolUrl> parsed = ParseUrl(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kUnsupported) << url;
  }
  EXPECT_EQ(ErrorOf("tcp://127.0.0.1:7700"),
            "kUnsupported: tcp: is not in this version; write embedded:?size=1GiB or file:PATH?size=1GiB");
}

TEST(PoolUrl, WhatIsNone) {
  EXPECT_EQ(ErrorOf(""),
            "kInvalidArgument: the pool URL is empty; write embedded:?size=1GiB or file:PATH?size=1GiB");
  EXPECT_EQ(ErrorOf("pool.farside"),
            "kInvalidArgument: \"pool.farside\" is not a pool URL; write embedded:?size=1GiB or "
            "file:PATH?size=1GiB");
  for (const char* url : {":", "?size=1GiB", "embedded", "tcp", "http://example.org",
                          "Embedded:", " embedded:", "embedded?size=1GiB"}) {
    EXPECT_EQ(ErrorOf(url), std::string("kInvalidArgument: \"") + url +
                                "\" is not a pool URL; write embedded:?size=1GiB or file:PATH?size=1GiB");
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
            "kInvalidArgument: \"sice\" is not a parameter of a pool URL; there are size and nodes");
  for (const char* url : {"embedded:?", "file:a?", "embedded:?size=1GiB&", "embedded:?&size=1GiB"}) {
    EXPECT_EQ(ErrorOf(url),
              "kInvalidArgument: \"\" is not a parameter of a pool URL; there are size and nodes")
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
  constexpr std::string_view kPieces[] = {
      "embedded", "file", "tcp", ":", "?", "&",  "=",    "size",
      "nodes",    "1GiB", "3",   "/", "a", "\n", "\xff", std::string_view("\0", 1)};
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
