#include "bench/peers/line_up.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/size.h"
#include "bench/peers/farside_system.h"
#include "bench/peers/memcached.h"
#include "bench/peers/redis.h"

namespace farside::peers {
namespace {

using Kind = SystemSpec::Kind;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr unsigned kMostThreads = 256;
constexpr std::string_view kServed = "served:";

Error BadSpec(std::string_view text) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("'{}' is no system; write farside:URL, farside:served:tcp, farside:served:shm, "
                           "farside+cache:URL, redis:tcp, redis:unix, memcached:tcp:1 or memcached:unix:4",
                           text));
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Far memory for one table: records with what surrounds them, as much again for values that were replaced and
// not yet freed, an index at a low load, and what a pool needs for itself.
uint64_t FarsideBytes(const LineUpOptions& options) {
  const uint64_t block = (options.value_size + kKeyBytes + 127) / 64 * 64;
  return 512 * kMiB + options.records * (3 * block + 64);
}

// Memory for all items with their headers in slabs, so that none is evicted.
uint64_t MemcachedBytes(const LineUpOptions& options) {
  return 128 * kMiB + options.records * 2 * (options.value_size + kKeyBytes + 80);
}

}  // namespace

std::string SystemSpec::Name() const {
  const std::string_view by = unix_socket ? "unix socket" : "tcp";
  if (kind == Kind::kRedis) return fmt::format("redis, {}", by);
  if (kind == Kind::kMemcached) return fmt::format("memcached -t {}, {}", threads, by);
  std::string_view where = url;
  if (!TakePrefix(where, kServed)) where = where.substr(0, where.find(':'));
  return fmt::format("farside, {}{}", where, cache ? ", cache" : "");
}

Result<SystemSpec> ParseSpec(std::string_view text) {
  SystemSpec spec;
  std::string_view rest = text;
  if (TakePrefix(rest, "farside:") || TakePrefix(rest, "farside+cache:")) {
    spec.url = rest;
    spec.cache = text.starts_with("farside+");
    const bool served = rest.starts_with(kServed);
    if (rest.empty() || (served && rest != "served:tcp" && rest != "served:shm")) return BadSpec(text);
    return spec;
  }
  const bool redis = TakePrefix(rest, "redis:");
  if (!redis && !TakePrefix(rest, "memcached:")) return BadSpec(text);
  spec.kind = redis ? Kind::kRedis : Kind::kMemcached;
  spec.unix_socket = rest.starts_with("unix");
  if (!TakePrefix(rest, "unix") && !TakePrefix(rest, "tcp")) return BadSpec(text);
  if (redis) {
    if (!rest.empty()) return BadSpec(text);
    return spec;
  }
  if (!TakePrefix(rest, ":")) return BadSpec(text);
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), spec.threads);
  const bool number = failure == std::errc() && end == rest.data() + rest.size();
  if (!number || spec.threads < 1 || spec.threads > kMostThreads) return BadSpec(text);
  return spec;
}

Result<LineUp> LineUp::Start(const LineUpOptions& options, Interrupt& interrupt) {
  Result<TemporaryFolder> folder = TemporaryFolder::Make();
  if (!folder.ok()) return folder.error();
  LineUp line_up(std::move(*folder));
  for (const SystemSpec& spec : options.specs) {
    if (Status added = line_up.Add(spec, options, interrupt); !added.ok()) {
      return Error(added.error().code(), fmt::format("{}: {}", spec.Name(), added.error().message()));
    }
  }
  return line_up;
}

Status LineUp::Add(const SystemSpec& spec, const LineUpOptions& options, Interrupt& interrupt) {
  switch (spec.kind) {
    case Kind::kFarside: return AddFarside(spec, options, interrupt);
    case Kind::kRedis: return AddRedis(spec, interrupt);
    case Kind::kMemcached: return AddMemcached(spec, options, interrupt);
  }
  return OkStatus();
}

Status LineUp::AddFarside(const SystemSpec& spec, const LineUpOptions& options, Interrupt& interrupt) {
  FarsideOptions farside{.name = spec.Name(), .url = spec.url};
  farside.table = fmt::format("peers-{}", systems_.size());
  farside.cached_locations = spec.cache ? std::max<uint64_t>(1, 2 * options.records) : 0;
  farside.sessions = options.connections;
  if (spec.url.starts_with(kServed)) {
    if (!farside_.has_value()) {
      const auto tables = static_cast<uint64_t>(
          std::count_if(options.specs.begin(), options.specs.end(),
                        [](const SystemSpec& other) { return other.url.starts_with(kServed); }));
      Result<FarsideDaemon> daemon =
          StartFarside(folder_.path(), options.farside_program, tables * FarsideBytes(options), interrupt);
      if (!daemon.ok()) return daemon.error();
      farside_.emplace(std::move(*daemon));
    }
    farside.url = spec.url == "served:tcp" ? farside_->tcp_url : farside_->shm_url;
    farside.daemon = farside_->process.id();
  } else if (spec.url == "embedded:") {
    farside.url = fmt::format("embedded:?size={}", FormatSize(FarsideBytes(options) / kMiB * kMiB));
  }
  Result<std::unique_ptr<System>> system = MakeFarside(std::move(farside));
  if (!system.ok()) return system.error();
  systems_.push_back(std::move(*system));
  return OkStatus();
}

Status LineUp::AddRedis(const SystemSpec& spec, Interrupt& interrupt) {
  if (!redis_.has_value()) {
    Result<RedisDaemon> daemon = StartRedis(folder_.path(), interrupt);
    if (!daemon.ok()) return daemon.error();
    redis_.emplace(std::move(*daemon));
  }
  const Endpoint& endpoint = spec.unix_socket ? redis_->unix_socket : redis_->tcp;
  systems_.push_back(MakeRedis(spec.Name(), endpoint, redis_->process.id()));
  return OkStatus();
}

Status LineUp::AddMemcached(const SystemSpec& spec, const LineUpOptions& options, Interrupt& interrupt) {
  Result<MemcachedDaemon> daemon =
      StartMemcached(folder_.path(), spec.unix_socket, spec.threads, MemcachedBytes(options), interrupt);
  if (!daemon.ok()) return daemon.error();
  memcached_.push_back(std::move(*daemon));
  systems_.push_back(MakeMemcached(spec.Name(), memcached_.back().endpoint, memcached_.back().process.id()));
  return OkStatus();
}

}  // namespace farside::peers
