// The parsers of what redis and memcached answer: right on what servers say, safe on anything else.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "bench/peers/memcached_reply.h"
#include "bench/peers/resp.h"

namespace farside::peers {
namespace {

using namespace std::string_view_literals;
using Resp = RespToken::Kind;
using Memcached = MemcachedReply::Kind;

// What both parsers are alike: one token from the front of some bytes.
struct Outcome {
  Parsed parsed = Parsed::kMore;
  int kind = 0;
  std::string text;
  std::string key;
  int64_t number = 0;
  size_t consumed = 0;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome TryResp(std::string_view in) {
  RespToken token;
  Outcome outcome;
  outcome.parsed = ParseResp(in, token, outcome.consumed);
  if (outcome.parsed != Parsed::kComplete) return outcome;
  outcome.kind = static_cast<int>(token.kind);
  outcome.text = token.text;
  outcome.number = token.number;
  return outcome;
}

Outcome TryMemcached(std::string_view in) {
  MemcachedReply reply;
  Outcome outcome;
  outcome.parsed = ParseMemcached(in, reply, outcome.consumed);
  if (outcome.parsed != Parsed::kComplete) return outcome;
  outcome.kind = static_cast<int>(reply.kind);
  outcome.text = reply.text;
  outcome.key = reply.key;
  return outcome;
}

using Parser = Outcome (*)(std::string_view);

// A copy of exactly these bytes, so that a sanitizer sees a read beyond them.
Outcome Exactly(Parser parser, std::string_view in) {
  const std::vector<char> copy(in.begin(), in.end());
  return parser({copy.data(), copy.size()});
}

// Cuts the text everywhere: every part of it asks for more, and whatever follows the whole changes nothing.
void ExpectSplitsAnywhere(Parser parser, std::string_view text) {
  SCOPED_TRACE(std::string(text.substr(0, 60)));
  const Outcome whole = Exactly(parser, text);
  ASSERT_EQ(whole.parsed, Parsed::kComplete);
  EXPECT_EQ(whole.consumed, text.size());
  for (size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_EQ(Exactly(parser, text.substr(0, cut)).parsed, Parsed::kMore) << "cut at " << cut;
  }
  for (const std::string_view behind : {"+"sv, "\r\n"sv, "garbage"sv, "\0\0"sv}) {
    EXPECT_EQ(Exactly(parser, std::string(text) + std::string(behind)), whole);
  }
}

// Bytes that look like answers, changed at a few places: cut, doubled, replaced.
std::string Damaged(std::string_view text, Random& random) {
  std::string damaged(text);
  for (uint64_t change = random.Between(1, 4); change > 0 && !damaged.empty(); --change) {
    const size_t at = random.Below(damaged.size());
    switch (random.Below(4)) {
      case 0: damaged[at] = static_cast<char>(random.Next()); break;
      case 1: damaged.erase(at, random.Between(1, 3)); break;
      case 2: damaged.insert(at, damaged.substr(at, random.Between(1, 8))); break;
      default: damaged.insert(at, 1, "\r\n $*-9 "[random.Below(8)]);
    }
  }
  return damaged;
}

// Whatever the bytes are: a token is a part of them, and the parser's mind does not change when more arrive,
// but for "more" becoming something.
void ExpectSane(Parser parser, const std::string& bytes) {
  Outcome last;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const Outcome outcome = Exactly(parser, std::string_view(bytes).substr(0, size));
    if (last.parsed != Parsed::kMore) {
      ASSERT_EQ(outcome, last) << "at " << size;
    }
    if (outcome.parsed == Parsed::kComplete) {
      ASSERT_GT(outcome.consumed, 0u);
      ASSERT_LE(outcome.consumed, size);
      ASSERT_LE(outcome.text.size() + outcome.key.size(), outcome.consumed);
    } else {
      ASSERT_EQ(outcome.consumed, 0u);
    }
    last = outcome;
  }
}

void ExpectSaneBySeed(Parser parser, const std::vector<std::string>& models) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(seed);
    ExpectSane(parser, Damaged(models[random.Below(models.size())], random));
    if (testing::Test::HasFailure()) return;
  }
}

const std::vector<std::string>& RespModels() {
  static const std::vector<std::string> models = {
      "+OK\r\n",         "-ERR unknown command\r\n",
      ":1234\r\n",       ":-7\r\n",
      "$5\r\nhello\r\n", "$0\r\n\r\n",
      "$-1\r\n",         "*3\r\n",
      "*0\r\n",          "*-1\r\n",
      "+\r\n",           "$12\r\n\r\n+OK\r\n$-1\r\n\r\n",
  };
  return models;
}

const std::vector<std::string>& MemcachedModels() {
  static const std::vector<std::string> models = {
      "VALUE abc 0 5\r\nhello\r\n",
      "VALUE k 12 0\r\n\r\n",
      "VALUE k 0 5 99\r\nEND\r\n\r\n",
      "VA 5\r\nhello\r\n",
      "VA 2 c9 t-1\r\nok\r\n",
      "END\r\n",
      "EN\r\n",
      "STORED\r\n",
      "HD\r\n",
      "HD k1\r\n",
      "NOT_STORED\r\n",
      "NS\r\n",
      "MN\r\n",
      "VERSION 1.6.18\r\n",
      "ERROR\r\n",
      "CLIENT_ERROR bad data chunk\r\n",
      "SERVER_ERROR object too large for cache\r\n",
  };
  return models;
}

TEST(PeersResp, ReadsEveryKindOfToken) {
  // Given each kind of answer. When it is parsed. Expect what it says.
  EXPECT_EQ(TryResp("+OK\r\n"), (Outcome{Parsed::kComplete, int(Resp::kText), "OK", "", 0, 5}));
  EXPECT_EQ(TryResp("-ERR no\r\n"), (Outcome{Parsed::kComplete, int(Resp::kError), "ERR no", "", 0, 9}));
  EXPECT_EQ(TryResp(":-42\r\n"), (Outcome{Parsed::kComplete, int(Resp::kNumber), "", "", -42, 6}));
  EXPECT_EQ(TryResp("$3\r\na\r\n\r\n"), (Outcome{Parsed::kComplete, int(Resp::kBytes), "a\r\n", "", 0, 9}));
  EXPECT_EQ(TryResp("$-1\r\n"), (Outcome{Parsed::kComplete, int(Resp::kNil), "", "", 0, 5}));
  EXPECT_EQ(TryResp("*64\r\n$1\r\n"), (Outcome{Parsed::kComplete, int(Resp::kArray), "", "", 64, 5}));
  EXPECT_EQ(TryResp("*-1\r\n"), (Outcome{Parsed::kComplete, int(Resp::kNil), "", "", 0, 5}));
}

TEST(PeersResp, AnswersMayBeSplitAtEveryByte) {
  // Given each kind of answer, in parts. When the parts before the last are parsed. Expect that they ask for
  // more.
  for (const std::string& model : RespModels()) {
    if (model.starts_with("$12")) continue;  // more than one token
    ExpectSplitsAnywhere(TryResp, model);
  }
  ExpectSplitsAnywhere(TryResp, "$300\r\n" + std::string(300, '\r') + "\r\n");
}

TEST(PeersResp, RefusesWhatNoServerSays) {
  // Given bytes that begin no answer, however they go on. When they are parsed. Expect a refusal, not a wait.
  for (const std::string_view text :
       {"OK\r\n"sv, "\r\n"sv, "\0"sv, "+O\nK\r\n"sv, "+O\rK\r\n"sv, ":\r\n"sv, ":1x\r\n"sv, ":+1\r\n"sv,
        ": 1\r\n"sv, ":99999999999999999999\r\n"sv, "$-2\r\n"sv, "$\r\n"sv, "$536870913\r\n"sv,
        "$3\r\nabcd"sv, "$3\r\nabc\rX"sv, "*-2\r\n"sv, "*1048577\r\n"sv, "*1e3\r\n"sv}) {
    EXPECT_EQ(Exactly(TryResp, text).parsed, Parsed::kMalformed) << text;
  }
  EXPECT_EQ(TryResp("+" + std::string(kLongestRespLine, 'x')).parsed, Parsed::kMalformed);
}

TEST(PeersResp, StaysSaneOnDamagedAnswers) {
  // Given answers with a few damaged bytes, by seed. When they arrive byte by byte. Expect tokens that lie
  // within the bytes, and that what was decided once stays decided.
  ExpectSaneBySeed(TryResp, RespModels());
}

TEST(PeersMemcached, ReadsEveryKindOfReply) {
  // Given each kind of reply of both dialects. When it is parsed. Expect what it says.
  EXPECT_EQ(TryMemcached("VALUE key 7 4\r\na\r\nb\r\nEND\r\n"),
            (Outcome{Parsed::kComplete, int(Memcached::kValue), "a\r\nb", "key", 0, 21}));
  EXPECT_EQ(TryMemcached("VALUE key 7 1 99\r\na\r\n"),
            (Outcome{Parsed::kComplete, int(Memcached::kValue), "a", "key", 0, 21}));
  EXPECT_EQ(TryMemcached("VA 2 t9\r\nab\r\n"),
            (Outcome{Parsed::kComplete, int(Memcached::kValue), "ab", "", 0, 13}));
  EXPECT_EQ(TryMemcached("END\r\n"), (Outcome{Parsed::kComplete, int(Memcached::kEnd), "", "", 0, 5}));
  EXPECT_EQ(TryMemcached("EN\r\n"), (Outcome{Parsed::kComplete, int(Memcached::kEnd), "", "", 0, 4}));
  EXPECT_EQ(TryMemcached("STORED\r\n"), (Outcome{Parsed::kComplete, int(Memcached::kStored), "", "", 0, 8}));
  EXPECT_EQ(TryMemcached("HD\r\n"), (Outcome{Parsed::kComplete, int(Memcached::kStored), "", "", 0, 4}));
  EXPECT_EQ(TryMemcached("NS\r\n"), (Outcome{Parsed::kComplete, int(Memcached::kNotStored), "", "", 0, 4}));
  EXPECT_EQ(TryMemcached("MN\r\n"), (Outcome{Parsed::kComplete, int(Memcached::kNoop), "", "", 0, 4}));
  EXPECT_EQ(TryMemcached("VERSION 1.6\r\n"),
            (Outcome{Parsed::kComplete, int(Memcached::kVersion), "1.6", "", 0, 13}));
  EXPECT_EQ(TryMemcached("SERVER_ERROR out of memory\r\n"),
            (Outcome{Parsed::kComplete, int(Memcached::kError), "SERVER_ERROR out of memory", "", 0, 28}));
}

TEST(PeersMemcached, RepliesMayBeSplitAtEveryByte) {
  // Given each kind of reply, in parts. When the parts before the last are parsed. Expect that they ask for
  // more.
  for (const std::string& model : MemcachedModels()) ExpectSplitsAnywhere(TryMemcached, model);
  ExpectSplitsAnywhere(TryMemcached, "VALUE k 0 300\r\n" + std::string(300, '\n') + "\r\n");
}

TEST(PeersMemcached, RefusesWhatNoServerSays) {
  // Given bytes that begin no reply, however they go on. When they are parsed. Expect a refusal, not a wait.
  for (const std::string_view text :
       {"\r\n"sv, "\n"sv, "OK?\r\n"sv, "value k 0 1\r\n"sv, "VALUE\r\n"sv, "VALUE k\r\n"sv, "VALUE k 0\r\n"sv,
        "VALUE k 0 -1\r\n"sv, "VALUE k 0 1x\r\n"sv, "VALUE  0 1\r\n"sv, "VALUE k 0 536870913\r\n"sv,
        "VALUE k 0 99999999999999999999\r\n"sv, "VALUE k 0 1\r\nab"sv, "VA\r\n"sv, "VA x\r\n"sv,
        "VA 1\r\na\rb"sv, "END\rX"sv, "STO\nRED\r\n"sv}) {
    EXPECT_EQ(Exactly(TryMemcached, text).parsed, Parsed::kMalformed) << text;
  }
  EXPECT_EQ(TryMemcached(std::string(kLongestMemcachedLine, 'x')).parsed, Parsed::kMalformed);
}

TEST(PeersMemcached, StaysSaneOnDamagedReplies) {
  // Given replies with a few damaged bytes, by seed. When they arrive byte by byte. Expect replies that lie
  // within the bytes, and that what was decided once stays decided.
  ExpectSaneBySeed(TryMemcached, MemcachedModels());
}

}  // namespace
}  // namespace farside::peers
