#include "tools/common/record_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "tools/common/text.h"

namespace farside::tools {
namespace {

using namespace std::string_view_literals;
using testing::HasSubstr;
using testing::StartsWith;

Record Parsed(std::string_view line) {
  const Result<std::optional<Record>> record = ParseRecord(line);
  if (!record.ok()) {
    ADD_FAILURE() << line << ": " << record.error().message();
    return {};
  }
  EXPECT_TRUE(record->has_value()) << line;
  return record->value_or(Record{});
}

std::string Refusal(std::string_view line) {
  const Result<std::optional<Record>> record = ParseRecord(line);
  EXPECT_FALSE(record.ok()) << Readable(line);
  return record.ok() ? "" : record.error().message();
}

std::string_view WithoutNewline(std::string_view line) { return line.substr(0, line.size() - 1); }

// Text that is UTF-8, or nearly; and bytes of all kinds.
std::string RandomText(Random& random) {
  static constexpr std::string_view kPieces[] = {"a",
                                                 "\"",
                                                 "\\",
                                                 "\n",
                                                 "\r",
                                                 "\t",
                                                 "\0"sv,
                                                 "\x1f",
                                                 "\x7f",
                                                 "\xc3\xa9",
                                                 "\xe2\x82\xac",
                                                 "\xf0\x9f\x98\x80",
                                                 "\xc3",
                                                 "\xff",
                                                 "/",
                                                 "{",
                                                 "}",
                                                 "u0041",
                                                 "\xed\xa0\x80"};
  std::string text;
  const uint64_t pieces = random.Below(12);
  for (uint64_t i = 0; i < pieces; ++i) {
    if (random.Below(4) == 0) {
      text += static_cast<char>(random.Below(256));
    } else {
      text += kPieces[random.Below(std::size(kPieces))];
    }
  }
  return text;
}

TEST(RecordFormat, LinesAsTheyAreDocumented) {
  EXPECT_EQ(FormatRecord("ada", "countess"), "{\"key\":\"ada\",\"value\":\"countess\"}\n");
  EXPECT_EQ(FormatRecord("", ""), "{\"key\":\"\",\"value\":\"\"}\n");
  EXPECT_EQ(FormatRecord("caf\xc3\xa9", "a \"b\"\\\n\x01\x7f"),
            "{\"key\":\"caf\xc3\xa9\",\"value\":\"a \\\"b\\\"\\\\\\n\\u0001\\u007f\"}\n");
  EXPECT_EQ(FormatRecord("\0\xff"sv, "v"), "{\"key64\":\"AP8=\",\"value\":\"v\"}\n");
  EXPECT_EQ(FormatRecord("k", "\xff"), "{\"key\":\"k\",\"value64\":\"/w==\"}\n");
}

TEST(RecordFormat, AnythingThatJsonAllows_IsRead) {
  EXPECT_EQ(Parsed(R"({"key":"ada","value":"countess"})"), (Record{"ada", "countess"}));
  EXPECT_EQ(Parsed("  {\t\"value\" : \"v\" , \"key\" : \"k\" } \r"), (Record{"k", "v"}));
  EXPECT_EQ(Parsed(R"({"key":"\u0061\u00e9\ud83d\ude00\/\u0000","value":""})"),
            (Record{std::string("a\xc3\xa9\xf0\x9f\x98\x80/\0"sv), ""}));
  EXPECT_EQ(Parsed(R"({"key64":"YWRh","value64":""})"), (Record{"ada", ""}));
  EXPECT_EQ(Parsed("\xef\xbb\xbf{\"key\":\"k\",\"value\":\"v\"}"), (Record{"k", "v"}));
}

TEST(RecordFormat, EmptyLines_MeanNothing) {
  for (const std::string_view empty : {"", " ", "\t", "\r", " \t \r"}) {
    const Result<std::optional<Record>> record = ParseRecord(empty);
    ASSERT_TRUE(record.ok());
    EXPECT_FALSE(record->has_value());
  }
}

TEST(RecordFormat, LinesThatAreWrong_SayWhatIsWrong) {
  EXPECT_THAT(Refusal("hello"), StartsWith("this is not JSON, at byte 1 of the line; expected {\"key\""));
  EXPECT_THAT(Refusal("{"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal(R"({"key":"k","value":"v")"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal(R"({"key":"k","value":"v"}})"), HasSubstr("not JSON, at byte 24"));
  EXPECT_THAT(Refusal(R"({"key":"k","value":"v"} {"key":"k","value":"v"})"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal("{\"key\":\"k\",\"value\":\"v\"}\0"sv),
              HasSubstr("at byte 24 of the line, which is zero"));
  EXPECT_THAT(Refusal("{\"key\":\"\xff\",\"value\":\"v\"}"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal(R"({"key":"\ud800","value":"v"})"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal("{\"key\":\"a\tb\",\"value\":\"v\"}"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal("null"), StartsWith("this is null; expected"));
  EXPECT_THAT(Refusal("17"), StartsWith("this is a number; expected"));
  EXPECT_THAT(Refusal("\"text\""), StartsWith("this is text; expected"));
  EXPECT_THAT(Refusal("[1]"), StartsWith("this is a list; expected"));
  EXPECT_THAT(Refusal("{}"), StartsWith("there is no key; expected"));
  EXPECT_THAT(Refusal(R"({"value":"v"})"), StartsWith("there is no key; expected"));
  EXPECT_THAT(Refusal(R"({"key":"k"})"), StartsWith("there is no value; expected"));
  EXPECT_EQ(Refusal(R"({"key":17,"value":"v"})"), "key is a number; keys and values are text in quotes");
  EXPECT_EQ(Refusal(R"({"key":"k","value":null})"), "value is null; keys and values are text in quotes");
  EXPECT_EQ(Refusal(R"({"key":"k","value":true})"), "value is true; keys and values are text in quotes");
  EXPECT_EQ(Refusal(R"({"key":"k","value":1e999})"),
            "this is not JSON, at byte 24 of the line; expected {\"key\":\"...\",\"value\":\"...\"}");
  EXPECT_EQ(Refusal(R"({"key":"k","value":{"a":"b"}})"),
            "value is an object; keys and values are text in quotes");
  EXPECT_EQ(Refusal(R"({"key":"k","value":["a"]})"), "value is a list; keys and values are text in quotes");
  EXPECT_EQ(Refusal(R"({"key":"k","vaule":"v"})"),
            "there is no field \"vaule\"; there are key, key64, value and value64");
  EXPECT_EQ(Refusal(R"({"key":"k","key64":"aw==","value":"v"})"), "key64 comes on top of another one");
  EXPECT_EQ(Refusal(R"({"key":"k","key":"k","value":"v"})"), "key comes on top of another one");
  EXPECT_EQ(Refusal(R"({"key64":"a","value":"v"})"),
            "key64: base64 has groups of four characters, padded with '='; these are 1");
}

TEST(RecordFormat, LargestRecord_FitsALine_LargerOnesAreRefused) {
  // Given a key and a value of the largest size, of the bytes that take most room. When they are written.
  // Expect a line that is within the bound, and is read back; and one byte more to be refused.
  const std::string key(kMaxKeyBytes, '\x01');
  const std::string value(kMaxValueBytes / 64, '\x01');
  const std::string line = FormatRecord(key, value);
  EXPECT_LE(line.size(), 6 * (key.size() + value.size()) + 100);
  EXPECT_LE(6 * (kMaxKeyBytes + kMaxValueBytes) + 100, kMostLineBytes);
  EXPECT_EQ(Parsed(WithoutNewline(line)), (Record{key, value}));
  EXPECT_THAT(Refusal(WithoutNewline(FormatRecord(key + "k", ""))),
              HasSubstr("the key has 65537 bytes; keys have at most 65536"));
  EXPECT_THAT(Refusal(WithoutNewline(FormatRecord("", std::string(kMaxValueBytes + 1, 'v')))),
              HasSubstr("the value has 67108865 bytes"));
}

TEST(RecordFormat, RandomBytes_ComeBack) {
  Random random(11);
  for (int i = 0; i < 20'000; ++i) {
    const Record record{RandomText(random), RandomText(random)};
    const std::string line = FormatRecord(record.key, record.value);
    ASSERT_EQ(line.find('\n'), line.size() - 1) << "a record is one line";
    ASSERT_TRUE(IsUtf8(line));
    ASSERT_EQ(Parsed(WithoutNewline(line)), record) << line;
  }
}

// A line that is like one of ours.
std::string MutatedLine(Random& random) {
  std::string line = FormatRecord(RandomText(random), RandomText(random));
  line.pop_back();
  const uint64_t changes = random.Below(4);
  for (uint64_t i = 0; i < changes && !line.empty(); ++i) {
    const size_t at = random.Below(line.size());
    switch (random.Below(5)) {
      case 0: line[at] = static_cast<char>(random.Below(256)); break;
      case 1: line.erase(at, random.Below(4)); break;
      case 2: line.insert(at, line.substr(random.Below(line.size()), random.Below(20))); break;
      case 3: line.insert(at, 1, "{}[]\",:\\0"[random.Below(9)]); break;
      case 4: line.resize(at); break;
    }
  }
  return line;
}

TEST(RecordFormat, AnyBytesAtAll_AreARecordOrOneReadableLine) {
  // Given random bytes, and lines of ours with changes. When they are read.
  // Expect a record that can be written and read again, or an error that is fit for a terminal.
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    for (int i = 0; i < 500; ++i) {
      std::string line = random.Below(5) == 0 ? RandomText(random) : MutatedLine(random);
      const Result<std::optional<Record>> record = ParseRecord(line);
      if (!record.ok()) {
        const std::string& message = record.error().message();
        ASSERT_FALSE(message.empty());
        ASSERT_LT(message.size(), 300u) << message;
        for (const char c : message) ASSERT_GE(static_cast<unsigned char>(c), 0x20) << "seed " << seed;
        ASSERT_TRUE(IsUtf8(message)) << "seed " << seed;
      } else if (record->has_value()) {
        ASSERT_EQ(Parsed(WithoutNewline(FormatRecord((*record)->key, (*record)->value))), **record)
            << "seed " << seed;
      }
    }
  }
}

TEST(RecordFormat, DeepNesting_IsRefusedAtOnce) {
  EXPECT_THAT(Refusal(std::string(10'000'000, '[')), StartsWith("this is a list"));
  std::string deep = R"({"key":)";
  for (int i = 0; i < 1'000'000; ++i) deep += R"({"key":)";
  EXPECT_EQ(Refusal(deep), "key is an object; keys and values are text in quotes");
}

}  // namespace
}  // namespace farside::tools
