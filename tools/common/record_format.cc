// Lines are read through the JSON library's events and not as its documents: a value is moved and never
// copied, a field that is given twice is noticed, and whatever is nested is refused before it is built.
#include "tools/common/record_format.h"

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/common/text.h"

namespace farside::tools {
namespace {

constexpr std::string_view kForm = R"(expected {"key":"...","value":"..."})";
constexpr size_t kShownBytes = 40;

std::string Shown(std::string_view text) {
  return text.size() <= kShownBytes ? Readable(text) : Readable(text.substr(0, kShownBytes)) + "...";
}

// What the library calls back. Each function returns false to end the parsing, with `problem_` set.
class LineReader {
 public:
  bool null() { return NotText("null"); }
  bool boolean(bool value) { return NotText(value ? "true" : "false"); }
  bool number_integer(int64_t) { return NotText("a number"); }
  bool number_unsigned(uint64_t) { return NotText("a number"); }
  bool number_float(double, const std::string&) { return NotText("a number"); }
  bool binary(std::vector<uint8_t>&) { return NotText("binary"); }
  bool start_array(size_t) { return NotText("a list"); }
  bool end_array() { return true; }

  bool start_object(size_t) {
    if (inside_) return NotText("an object");
    inside_ = true;
    return true;
  }
  bool end_object() { return true; }

  bool key(std::string& name) {
    field_ = name;
    if (name == "key" || name == "key64") return First(record_key_);
    if (name == "value" || name == "value64") return First(record_value_);
    return Refuse(
        fmt::format("there is no field \"{}\"; there are key, key64, value and value64", Shown(name)));
  }

  bool string(std::string& text) {
    if (!inside_) return NotText("text");
    std::optional<std::string>& into = field_.starts_with("key") ? record_key_ : record_value_;
    if (!field_.ends_with("64")) {
      into = std::move(text);
      return true;
    }
    Result<std::string> bytes = FromBase64(text);
    if (!bytes.ok()) return Refuse(fmt::format("{}: {}", field_, bytes.error().message()));
    into = std::move(*bytes);
    return true;
  }

  // `position` is that of the character behind the one that is wrong.
  template <class Exception>
  bool parse_error(size_t position, const std::string&, const Exception&) {
    return Refuse(fmt::format("this is not JSON, at byte {} of the line; {}", position, kForm));
  }

  Result<std::optional<Record>> Take() {
    if (!problem_.empty()) return Error(ErrorCode::kInvalidArgument, std::move(problem_));
    if (!record_key_.has_value()) return Missing("key");
    if (!record_value_.has_value()) return Missing("value");
    if (record_key_->size() > kMaxKeyBytes) return TooLarge("key", record_key_->size(), kMaxKeyBytes);
    if (record_value_->size() > kMaxValueBytes)
      return TooLarge("value", record_value_->size(), kMaxValueBytes);
    return std::optional<Record>(Record{std::move(*record_key_), std::move(*record_value_)});
  }

 private:
  bool Refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool NotText(std::string_view what) {
    return Refuse(inside_ ? fmt::format("{} is {}; keys and values are text in quotes", field_, what)
                          : fmt::format("this is {}; {}", what, kForm));
  }
  bool First(const std::optional<std::string>& of) {
    return !of.has_value() || Refuse(fmt::format("{} comes on top of another one", field_));
  }
  static Error Missing(std::string_view what) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("there is no {}; {}", what, kForm));
  }
  static Error TooLarge(std::string_view what, size_t bytes, size_t most) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the {} has {} bytes; {}s have at most {}", what, bytes, what, most));
  }

  bool inside_ = false;
  std::string field_;
  std::optional<std::string> record_key_;
  std::optional<std::string> record_value_;
  std::string problem_;
};

void AppendText(std::string_view text, std::string& out) {
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
}

void AppendField(std::string_view name, std::string_view bytes, std::string& out) {
  const bool text = IsUtf8(bytes);
  out += '"';
  out += name;
  out += text ? "\":\"" : "64\":\"";
  if (text) {
    AppendText(bytes, out);
  } else {
    out += ToBase64(bytes);
  }
  out += '"';
}

}  // namespace

std::string FormatField(std::string_view name, std::string_view bytes) {
  std::string field;
  AppendField(name, bytes, field);
  return field;
}

std::string FormatRecord(std::string_view key, std::string_view value) {
  std::string line;
  line.reserve(key.size() + value.size() + 24);
  line += '{';
  AppendField("key", key, line);
  line += ',';
  AppendField("value", value, line);
  line += "}\n";
  return line;
}

Result<std::optional<Record>> ParseRecord(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::optional<Record>();
  // To the library, a zero byte is the end of the text, and what follows it is nothing.
  if (const size_t zero = line.find('\0'); zero != std::string_view::npos) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("this is not JSON, at byte {} of the line, which is zero; {}", zero + 1, kForm));
  }
  LineReader reader;
  // It returns whether it came to the end; if not, the reader knows why.
  static_cast<void>(nlohmann::json::sax_parse(line.begin(), line.end(), &reader));
  return reader.Take();
}

}  // namespace farside::tools
