#include "pool/url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/size.h"
#include "pool/catalog_layout.h"

namespace farside::pool {
namespace {

constexpr std::string_view kForms = "embedded:?size=1GiB or file:PATH?size=1GiB";
constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;
constexpr uint32_t kMostNodes = kMaxTableNodes;  // every table lives on all nodes of its pool
constexpr std::array<std::string_view, 4> kFormsOfOtherVersions = {"pmem", "shm", "tcp", "verbs"};

// "a", "b=c" of "a:b=c"; nothing behind if the separator is missing.
struct Halves {
  std::string_view before;
  std::optional<std::string_view> after;
};

Halves SplitAt(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + 1)};
}

Error Refuse(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Result<uint32_t> ParseNodes(std::string_view text) {
  uint32_t nodes = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, nodes);
  if (error != std::errc() || rest != end || nodes == 0 || nodes > kMostNodes) {
    return Refuse(fmt::format("nodes=\"{}\" is not a number from 1 to {}", Escape(text), kMostNodes));
  }
  return nodes;
}

// What was written, before defaults.
struct Parameters {
  std::optional<uint64_t> size;
  std::optional<uint32_t> nodes;
};

Status ParseParameter(std::string_view text, Parameters& parameters) {
  const auto [name, value] = SplitAt(text, '=');
  const bool is_size = name == "size";
  if (!is_size && name != "nodes") {
    return Refuse(
        fmt::format("\"{}\" is not a parameter of a pool URL; there are size and nodes", Escape(name)));
  }
  if (!value.has_value())
    return Refuse(fmt::format("{} needs a value, as in {}=1{}", name, name, is_size ? "GiB" : ""));
  if (is_size ? parameters.size.has_value() : parameters.nodes.has_value()) {
    return Refuse(fmt::format("{} is given twice", name));
  }
  if (is_size) {
    const Result<uint64_t> size = ParseSize(*value);
    if (!size.ok()) return size.error();
    parameters.size = *size;
  } else {
    const Result<uint32_t> nodes = ParseNodes(*value);
    if (!nodes.ok()) return nodes.error();
    parameters.nodes = *nodes;
  }
  return OkStatus();
}

Result<Parameters> ParseParameters(std::string_view query) {
  Parameters parameters;
  std::optional<std::string_view> rest = query;
  while (rest.has_value()) {
    const auto [parameter, behind] = SplitAt(*rest, '&');
    if (Status good = ParseParameter(parameter, parameters); !good.ok()) return good.error();
    rest = behind;
  }
  return parameters;
}

Result<PoolUrl> Embedded(std::string_view name, const Parameters& parameters) {
  if (!name.empty()) {
    return Refuse(
        fmt::format("embedded: has no name, but \"{}\" follows it; write embedded:?size=1GiB", Escape(name)));
  }
  return PoolUrl{.kind = PoolUrl::Kind::kEmbedded,
                 .path = "",
                 .size = parameters.size.value_or(kDefaultBytes),
                 .nodes = parameters.nodes.value_or(1)};
}

Result<PoolUrl> InFile(std::string_view path, const Parameters& parameters) {
  if (path.empty()) return Refuse("file: needs a path, as in file:pool.farside?size=1GiB");
  if (path.find('\0') != std::string_view::npos) {
    return Refuse(fmt::format("the path \"{}\" holds a zero byte", Escape(path)));
  }
  if (parameters.nodes.value_or(1) != 1) {
    return Refuse(
        fmt::format("a file is one node, but nodes={} is asked for; leave it out", *parameters.nodes));
  }
  return PoolUrl{
      .kind = PoolUrl::Kind::kFile, .path = std::string(path), .size = parameters.size, .nodes = 1};
}

}  // namespace

Result<PoolUrl> ParseUrl(std::string_view url) {
  if (url.empty()) return Refuse(fmt::format("the pool URL is empty; write {}", kForms));
  const auto [kind, rest] = SplitAt(url, ':');
  if (rest.has_value() && std::ranges::find(kFormsOfOtherVersions, kind) != kFormsOfOtherVersions.end()) {
    return Error(ErrorCode::kUnsupported, fmt::format("{}: is not in this version; write {}", kind, kForms));
  }
  if (!rest.has_value() || (kind != "embedded" && kind != "file")) {
    return Refuse(fmt::format("\"{}\" is not a pool URL; write {}", Escape(url), kForms));
  }

  const auto [name, query] = SplitAt(*rest, '?');
  const Result<Parameters> parameters = query.has_value() ? ParseParameters(*query) : Parameters{};
  if (!parameters.ok()) return parameters.error();
  return kind == "embedded" ? Embedded(name, *parameters) : InFile(name, *parameters);
}

}  // namespace farside::pool
