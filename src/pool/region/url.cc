#include "pool/region/url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/size.h"
#include "pool/catalog/layout.h"

namespace farside::pool {
namespace {

constexpr std::string_view kForms =
    "embedded:?size=1GiB, file:PATH?size=1GiB, pmem:PATH?size=1GiB, shm:NAME or tcp://HOST:PORT";
constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;
constexpr uint32_t kMostNodes = kMaxTableNodes;  // every table lives on all nodes of its pool
constexpr std::array<std::string_view, 5> kSchemes = {"embedded", "file", "pmem", "shm", "tcp"};
constexpr std::array<std::string_view, 1> kFormsOfOtherVersions = {"verbs"};

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

Result<bool> ParseYesNo(std::string_view name, std::string_view text) {
  if (text == "yes") return true;
  if (text == "no") return false;
  return Refuse(fmt::format("{}=\"{}\" is neither yes nor no", name, Escape(text)));
}

// ---- parameters --------------------------------------------------------------------------------------

struct Known {
  std::string_view name;
  std::string_view example;
};
constexpr std::array<Known, 2> kLocalParameters = {{{"size", "1GiB"}, {"nodes", "1"}}};
constexpr std::array<Known, 4> kTcpParameters = {
    {{"ca", "ca.pem"}, {"cert", "client.pem"}, {"key", "client.key"}, {"insecure", "yes"}}};

// The parameters of a URL that were written.
class Parameters {
 public:
  static Result<Parameters> Parse(std::optional<std::string_view> query, std::span<const Known> known) {
    Parameters parameters;
    for (std::optional<std::string_view> rest = query; rest.has_value();) {
      const auto [parameter, behind] = SplitAt(*rest, '&');
      if (Status good = parameters.Add(parameter, known); !good.ok()) return good.error();
      rest = behind;
    }
    return parameters;
  }
  std::optional<std::string_view> Find(std::string_view name) const {
    const auto found = std::ranges::find(given_, name, &Given::name);
    if (found == given_.end()) return std::nullopt;
    return found->value;
  }
  // Empty if it is not there.
  std::string Text(std::string_view name) const { return std::string(Find(name).value_or("")); }

 private:
  struct Given {
    std::string_view name;
    std::string_view value;
  };

  Status Add(std::string_view text, std::span<const Known> known) {
    const auto [name, value] = SplitAt(text, '=');
    const auto found = std::ranges::find(known, name, &Known::name);
    if (found == known.end()) {
      std::vector<std::string_view> names;
      for (const Known& each : known) names.push_back(each.name);
      if (names.empty())
        return Refuse(fmt::format("\"{}\" is not a parameter of this sort of pool URL", Escape(name)));
      return Refuse(fmt::format("\"{}\" is not a parameter of this sort of pool URL; there are {}",
                                Escape(name), fmt::join(names, ", ")));
    }
    if (!value.has_value())
      return Refuse(fmt::format("{} needs a value, as in {}={}", name, name, found->example));
    if (Find(name).has_value()) return Refuse(fmt::format("{} is given twice", name));
    given_.push_back({name, *value});
    return OkStatus();
  }

  std::vector<Given> given_;
};

// ---- the forms ---------------------------------------------------------------------------------------

// What embedded:, file: and pmem: have in common.
Result<PoolUrl> Local(PoolUrl::Kind kind, std::optional<std::string_view> query) {
  const Result<Parameters> parameters = Parameters::Parse(query, kLocalParameters);
  if (!parameters.ok()) return parameters.error();
  PoolUrl url{.kind = kind};
  if (const std::optional<std::string_view> text = parameters->Find("size")) {
    const Result<uint64_t> size = ParseSize(*text);
    if (!size.ok()) return size.error();
    url.size = *size;
  }
  if (const std::optional<std::string_view> text = parameters->Find("nodes")) {
    const Result<uint32_t> nodes = ParseNodes(*text);
    if (!nodes.ok()) return nodes.error();
    url.nodes = *nodes;
  }
  return url;
}

Result<PoolUrl> Embedded(std::string_view name, std::optional<std::string_view> query) {
  Result<PoolUrl> url = Local(PoolUrl::Kind::kEmbedded, query);
  if (!url.ok()) return url;
  if (!name.empty()) {
    return Refuse(
        fmt::format("embedded: has no name, but \"{}\" follows it; write embedded:?size=1GiB", Escape(name)));
  }
  if (!url->size.has_value()) url->size = kDefaultBytes;
  return url;
}

// `scheme` is that of the kind.
Result<PoolUrl> InFile(PoolUrl::Kind kind, std::string_view scheme, std::string_view path,
                       std::optional<std::string_view> query) {
  Result<PoolUrl> url = Local(kind, query);
  if (!url.ok()) return url;
  if (path.empty())
    return Refuse(fmt::format("{}: needs a path, as in {}:pool.farside?size=1GiB", scheme, scheme));
  if (path.find('\0') != std::string_view::npos) {
    return Refuse(fmt::format("the path \"{}\" holds a zero byte", Escape(path)));
  }
  if (url->nodes != 1) {
    return Refuse(fmt::format("a file is one node, but nodes={} is asked for; leave it out", url->nodes));
  }
  url->path = path;
  return url;
}

// "a,b,c"; none of them empty, no more than a pool may have, none twice.
Result<std::vector<std::string>> ParseNames(std::string_view list, std::string_view example) {
  std::vector<std::string> names;
  for (std::optional<std::string_view> rest = list; rest.has_value();) {
    const auto [name, behind] = SplitAt(*rest, ',');
    if (name.empty()) return Refuse(fmt::format("the name of a node is missing; write {}", example));
    if (name.find('\0') != std::string_view::npos)
      return Refuse(fmt::format("the name \"{}\" holds a zero byte", Escape(name)));
    if (std::ranges::find(names, name) != names.end())
      return Refuse(fmt::format("node {} is named twice", Escape(name)));
    if (names.size() == kMostNodes) return Refuse(fmt::format("a pool has at most {} nodes", kMostNodes));
    names.emplace_back(name);
    rest = behind;
  }
  return names;
}

Result<PoolUrl> Shm(std::string_view list, std::optional<std::string_view> query) {
  const Result<Parameters> parameters = Parameters::Parse(query, {});
  if (!parameters.ok()) return parameters.error();
  Result<std::vector<std::string>> names = ParseNames(list, "shm:NAME or shm:NAME,NAME");
  if (!names.ok()) return names.error();
  PoolUrl url{.kind = PoolUrl::Kind::kShm};
  url.nodes = static_cast<uint32_t>(names->size());
  url.names = std::move(*names);
  return url;
}

bool IsHostAndPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view port = text.substr(colon + 1);
  uint16_t number = 0;
  const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && rest == port.data() + port.size() && number != 0;
}

Result<PoolUrl> Tcp(std::string_view list, std::optional<std::string_view> query) {
  const Result<Parameters> parameters = Parameters::Parse(query, kTcpParameters);
  if (!parameters.ok()) return parameters.error();
  if (!list.starts_with("//")) return Refuse("two slashes follow tcp:, as in tcp://127.0.0.1:7700");
  Result<std::vector<std::string>> names =
      ParseNames(list.substr(2), "tcp://HOST:PORT or tcp://HOST:PORT,HOST:PORT");
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    if (!IsHostAndPort(name)) {
      return Refuse(fmt::format(
          "\"{}\" is not a host and a port; write 127.0.0.1:7700, [::1]:7700 or host:7700", Escape(name)));
    }
  }
  PoolUrl url{.kind = PoolUrl::Kind::kTcp};
  url.nodes = static_cast<uint32_t>(names->size());
  url.names = std::move(*names);
  url.ca = parameters->Text("ca");
  url.cert = parameters->Text("cert");
  url.key = parameters->Text("key");
  if (url.ca.empty() != url.cert.empty() || url.ca.empty() != url.key.empty())
    return Refuse("TLS takes all three of ca, cert and key, as in ?ca=ca.pem&cert=client.pem&key=client.key");
  if (const std::optional<std::string_view> text = parameters->Find("insecure")) {
    const Result<bool> insecure = ParseYesNo("insecure", *text);
    if (!insecure.ok()) return insecure.error();
    url.insecure = *insecure;
  }
  return url;
}

}  // namespace

bool HasUrlScheme(std::string_view text) {
  const auto [kind, rest] = SplitAt(text, ':');
  return rest.has_value() && std::ranges::find(kSchemes, kind) != kSchemes.end();
}

Result<PoolUrl> ParseUrl(std::string_view url) {
  if (url.empty()) return Refuse(fmt::format("the pool URL is empty; write {}", kForms));
  const auto [kind, rest] = SplitAt(url, ':');
  if (rest.has_value()) {
    const auto [name, query] = SplitAt(*rest, '?');
    if (kind == "embedded") return Embedded(name, query);
    if (kind == "file") return InFile(PoolUrl::Kind::kFile, kind, name, query);
    if (kind == "pmem") return InFile(PoolUrl::Kind::kPmem, kind, name, query);
    if (kind == "shm") return Shm(name, query);
    if (kind == "tcp") return Tcp(name, query);
    if (std::ranges::find(kFormsOfOtherVersions, kind) != kFormsOfOtherVersions.end()) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: is not in this version; write {}", kind, kForms));
    }
  }
  return Refuse(fmt::format("\"{}\" is not a pool URL; write {}", Escape(url), kForms));
}

}  // namespace farside::pool
