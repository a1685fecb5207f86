// `farside put`, `farside get` and `farside del`: one record of a table.
//
// Keys and values are the bytes that the shell hands over, unless they are given in hexadecimal or base64.
#pragma once

#include <string>

#include "index/index.h"
#include "tools/common/exit_code.h"
#include "tools/common/text.h"

namespace farside::tools {

struct PutCommand {
  std::string url;
  std::string table;
  std::string key;
  std::string value;  // "-": what stdin has, as it is
  Encoding encoding = Encoding::kPlain;
  bool create = false;
  std::string engine;
  index::OptionMap options;
  bool json = false;
};

struct GetCommand {
  std::string url;
  std::string table;
  std::string key;
  Encoding encoding = Encoding::kPlain;
  bool raw = false;  // no newline behind the value
  bool json = false;
};

struct DelCommand {
  std::string url;
  std::string table;
  std::string key;
  Encoding encoding = Encoding::kPlain;
  bool json = false;
};

ExitCode Put(const PutCommand& command);
ExitCode Get(const GetCommand& command);
ExitCode Del(const DelCommand& command);

}  // namespace farside::tools
