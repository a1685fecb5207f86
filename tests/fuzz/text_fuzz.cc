// Text that users give: lines of `farside import`, encoded keys, URLs, sizes, addresses and options. What is
// read is written and read again.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/size.h"
#include "fabric/tcp/endpoint.h"
#include "index/tables.h"
#include "pool/region/url.h"
#include "tests/fuzz/target.h"
#include "tools/common/record_format.h"
#include "tools/common/text.h"

namespace farside::fuzz {
namespace {

void TryRecord(std::string_view line) {
  const Result<std::optional<Record>> record = tools::ParseRecord(line);
  if (!record.ok() || !record->has_value()) return;
  std::string written = tools::FormatRecord((*record)->key, (*record)->value);
  Require(written.ends_with('\n') && written.find('\n') == written.size() - 1, "a record is one line");
  written.pop_back();
  const Result<std::optional<Record>> again = tools::ParseRecord(written);
  Require(again.ok() && again->has_value(), "a record that was written can be read");
  Require((*again)->key == (*record)->key && (*again)->value == (*record)->value, "it is the same record");
}

void TryOthers(std::string_view text) {
  for (const tools::Encoding encoding :
       {tools::Encoding::kPlain, tools::Encoding::kHex, tools::Encoding::kBase64}) {
    static_cast<void>(tools::Decode(text, encoding));
  }
  static_cast<void>(pool::ParseUrl(text));
  static_cast<void>(fabric::tcp::Endpoint::Parse(text));
  static_cast<void>(index::ParseOptions(text));
  if (const Result<uint64_t> size = ParseSize(text); size.ok()) {
    const Result<uint64_t> again = ParseSize(FormatSize(*size));
    Require(again.ok() && *again == *size, "a size that was written can be read");
  }
}

}  // namespace

std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds;
  for (const std::string_view text : {
           R"({"key":"ada","value":"countess"})",
           R"({"key":"caf\u00e9\ud83d\ude00","value":"a line\nand \"another\""})",
           R"({"key64":"AP8=","value":"any bytes"})",
           R"(  { "value64" : "iVBORw0KGgo=" , "key" : "" }  )",
           "deadBEEF00",
           "tcp://node1:7700,[::1]:7701?ca=ca.pem&cert=a.pem&key=a.key",
           "shm:pool,other",
           "file:/var/lib/pool?size=1GiB",
           "embedded:?size=64MiB&nodes=3",
           "1536MiB",
           "keys=inline,load=0.5,leaf=64",
       }) {
    seeds.push_back(BytesOf(text));
  }
  return seeds;
}

void Try(Input input) {
  const std::string text(input.rest().begin(), input.rest().end());  // its exact size
  TryRecord(text);
  TryOthers(text);
}

}  // namespace farside::fuzz
