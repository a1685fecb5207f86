#include "bench/peers/redis.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "bench/peers/conversation.h"
#include "bench/peers/resp.h"

namespace farside::peers {
namespace {

using Kind = RespToken::Kind;

enum Style : int {
  kSingle,  // one GET or SET for each key, all of them sent together
  kMany,    // one MGET or MSET for all keys
};

constexpr size_t kOverheadBytes = 64;  // of a key and a value in requests and answers, more than there is

class RedisConnection final : public Connection {
 public:
  RedisConnection(Stream stream, size_t depth, size_t value_size)
      : talk_(std::move(stream), (depth + 1) * (kKeyBytes + value_size + kOverheadBytes),
              (depth + 1) * (value_size + kOverheadBytes)),
        value_header_(fmt::format("\r\n${}\r\n", value_size)) {}

  Status Run(Operation operation, const Batch& batch, const Manner& manner) override {
    if (operation == Operation::kGet) return Get(batch, manner);
    return Set(batch, manner);
  }

  Result<std::string> Version() {
    talk_.request() = "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n";
    if (Status sent = talk_.Send(); !sent.ok()) return sent.error();
    RespToken info;
    if (Status got = talk_.Receive(info, Wait::kBlock); !got.ok()) return got.error();
    constexpr std::string_view kField = "redis_version:";
    const size_t at = info.text.find(kField);
    if (info.kind != Kind::kBytes || at == std::string_view::npos) return std::string("redis");
    const std::string_view version = info.text.substr(at + kField.size());
    return fmt::format("redis {}", version.substr(0, version.find('\r')));
  }

 private:
  Status Get(const Batch& batch, const Manner& manner) {
    std::string& request = talk_.request();
    const bool many = manner.style == kMany;
    if (many) fmt::format_to(std::back_inserter(request), "*{}\r\n$4\r\nMGET\r\n", batch.size() + 1);
    for (size_t i = 0; i < batch.size(); ++i) {
      request += many ? "$8\r\n" : "*2\r\n$3\r\nGET\r\n$8\r\n";
      request += batch.key(i);
      request += "\r\n";
    }
    if (Status sent = talk_.Send(); !sent.ok()) return sent;

    RespToken token;
    if (many) {
      if (Status got = talk_.Receive(token, manner.wait); !got.ok()) return got;
      if (token.kind != Kind::kArray || static_cast<size_t>(token.number) != batch.size())
        return Unexpected(token);
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      if (Status got = talk_.Receive(token, manner.wait); !got.ok()) return got;
      if (token.kind == Kind::kNil) return WrongAnswer(batch.key(i), "that it is absent");
      if (token.kind != Kind::kBytes) return Unexpected(token);
      if (!batch.IsRight(i, token.text)) return WrongAnswer(batch.key(i), "not what was written");
    }
    return OkStatus();
  }

  Status Set(const Batch& batch, const Manner& manner) {
    std::string& request = talk_.request();
    const bool many = manner.style == kMany;
    if (many) fmt::format_to(std::back_inserter(request), "*{}\r\n$4\r\nMSET\r\n", 2 * batch.size() + 1);
    for (size_t i = 0; i < batch.size(); ++i) {
      request += many ? "$8\r\n" : "*3\r\n$3\r\nSET\r\n$8\r\n";
      request += batch.key(i);
      request += value_header_;
      request += batch.value(i);
      request += "\r\n";
    }
    if (Status sent = talk_.Send(); !sent.ok()) return sent;

    RespToken token;
    const size_t answers = many ? 1 : batch.size();
    for (size_t i = 0; i < answers; ++i) {
      if (Status got = talk_.Receive(token, manner.wait); !got.ok()) return got;
      if (token.kind != Kind::kText || token.text != "OK") return Unexpected(token);
    }
    return OkStatus();
  }

  static Error Unexpected(const RespToken& token) {
    if (token.kind == Kind::kError)
      return Error(ErrorCode::kUnavailable, fmt::format("redis: {}", token.text));
    return Error(ErrorCode::kCorrupt, "redis gave an answer of another kind");
  }

  static_assert(kKeyBytes == 8, "the requests above say so");

  Conversation<RespToken, ParseResp> talk_;
  const std::string value_header_;  // what stands between a key and its value
};

class Redis final : public System {
 public:
  Redis(std::string name, Endpoint endpoint, pid_t daemon)
      : name_(std::move(name)), endpoint_(std::move(endpoint)), daemon_(daemon) {}

  const std::string& name() const override { return name_; }
  std::optional<pid_t> daemon() const override { return daemon_; }

  Result<std::string> Version() override {
    Result<Stream> stream = Stream::Connect(endpoint_);
    if (!stream.ok()) return stream.error();
    return RedisConnection(std::move(*stream), 1, 0).Version();
  }

  std::vector<Manner> Manners(Operation operation) const override {
    const bool get = operation == Operation::kGet;
    const std::string single = get ? "GET" : "SET";
    const std::string many = get ? "MGET" : "MSET";
    return {{kSingle, Wait::kBlock, single},
            {kSingle, Wait::kSpin, single + ", spinning"},
            {kMany, Wait::kBlock, many},
            {kMany, Wait::kSpin, many + ", spinning"}};
  }

  Result<std::unique_ptr<Connection>> Connect(size_t depth, size_t value_size) override {
    Result<Stream> stream = Stream::Connect(endpoint_);
    if (!stream.ok()) return stream.error();
    return std::unique_ptr<Connection>(
        std::make_unique<RedisConnection>(std::move(*stream), depth, value_size));
  }

 private:
  const std::string name_;
  const Endpoint endpoint_;
  const pid_t daemon_;
};

}  // namespace

std::unique_ptr<System> MakeRedis(std::string name, Endpoint endpoint, pid_t daemon) {
  return std::make_unique<Redis>(std::move(name), std::move(endpoint), daemon);
}

}  // namespace farside::peers
