#include "bench/peers/memcached.h"

#include <utility>

#include <fmt/format.h>

#include "bench/peers/conversation.h"
#include "bench/peers/memcached_reply.h"

namespace farside::peers {
namespace {

using Kind = MemcachedReply::Kind;

enum Style : int {
  kClassic,  // one get or set for each key, all of them sent together
  kMany,     // one get with all keys; there is no such set
  kMeta,     // mg for each key; or ms that answers only if something is wrong, and mn at the end
};

constexpr size_t kOverheadBytes = 64;  // of a key and a value in requests and answers, more than there is

class MemcachedConnection final : public Connection {
 public:
  MemcachedConnection(Stream stream, size_t depth, size_t value_size)
      : talk_(std::move(stream), (depth + 1) * (kKeyBytes + value_size + kOverheadBytes),
              (depth + 1) * (kKeyBytes + value_size + kOverheadBytes)),
        set_header_(fmt::format(" 0 0 {}\r\n", value_size)),
        meta_set_header_(fmt::format(" {} q\r\n", value_size)) {}

  Status Run(Operation operation, const Batch& batch, const Manner& manner) override {
    if (operation == Operation::kGet) return Get(batch, manner);
    return Set(batch, manner);
  }

  Result<std::string> Version() {
    talk_.request() = "version\r\n";
    if (Status sent = talk_.Send(); !sent.ok()) return sent.error();
    MemcachedReply reply;
    if (Status got = talk_.Receive(reply, Wait::kBlock); !got.ok()) return got.error();
    if (reply.kind != Kind::kVersion) return Unexpected(reply);
    return fmt::format("memcached {}", reply.text);
  }

 private:
  Status Get(const Batch& batch, const Manner& manner) {
    std::string& request = talk_.request();
    if (manner.style == kMany) {
      request += "get";
      for (size_t i = 0; i < batch.size(); ++i) {
        request += ' ';
        request += batch.key(i);
      }
      request += "\r\n";
    } else {
      const bool meta = manner.style == kMeta;
      for (size_t i = 0; i < batch.size(); ++i) {
        request += meta ? "mg " : "get ";
        request += batch.key(i);
        request += meta ? " v\r\n" : "\r\n";
      }
    }
    if (Status sent = talk_.Send(); !sent.ok()) return sent;

    for (size_t i = 0; i < batch.size(); ++i) {
      const bool last = i + 1 == batch.size();
      const bool end = manner.style == kClassic || (manner.style == kMany && last);
      if (Status got = ReceiveValue(batch, i, manner, end); !got.ok()) return got;
    }
    return OkStatus();
  }

  // The value of key `i`, and the END behind it if there should be one.
  Status ReceiveValue(const Batch& batch, size_t i, const Manner& manner, bool end) {
    MemcachedReply reply;
    if (Status got = talk_.Receive(reply, manner.wait); !got.ok()) return got;
    if (reply.kind == Kind::kEnd) return WrongAnswer(batch.key(i), "that it is absent");
    if (reply.kind != Kind::kValue) return Unexpected(reply);
    // A server that leaves an absent key out of many answers with the next one.
    if (manner.style != kMeta && reply.key != batch.key(i))
      return WrongAnswer(batch.key(i), "for another key");
    if (!batch.IsRight(i, reply.text)) return WrongAnswer(batch.key(i), "not what was written");
    if (!end) return OkStatus();
    if (Status got = talk_.Receive(reply, manner.wait); !got.ok()) return got;
    if (reply.kind != Kind::kEnd) return Unexpected(reply);
    return OkStatus();
  }

  Status Set(const Batch& batch, const Manner& manner) {
    std::string& request = talk_.request();
    const bool meta = manner.style == kMeta;
    for (size_t i = 0; i < batch.size(); ++i) {
      request += meta ? "ms " : "set ";
      request += batch.key(i);
      request += meta ? meta_set_header_ : set_header_;
      request += batch.value(i);
      request += "\r\n";
    }
    if (meta) request += "mn\r\n";
    if (Status sent = talk_.Send(); !sent.ok()) return sent;

    MemcachedReply reply;
    const size_t answers = meta ? 1 : batch.size();
    for (size_t i = 0; i < answers; ++i) {
      if (Status got = talk_.Receive(reply, manner.wait); !got.ok()) return got;
      if (reply.kind != (meta ? Kind::kNoop : Kind::kStored)) return Unexpected(reply);
    }
    return OkStatus();
  }

  static Error Unexpected(const MemcachedReply& reply) {
    if (reply.kind == Kind::kError)
      return Error(ErrorCode::kUnavailable, fmt::format("memcached: {}", reply.text));
    if (reply.kind == Kind::kNotStored)
      return Error(ErrorCode::kUnavailable, "memcached did not store a value");
    return Error(ErrorCode::kCorrupt, "memcached gave an answer of another kind");
  }

  Conversation<MemcachedReply, ParseMemcached> talk_;
  const std::string set_header_;  // what stands between a key and its value
  const std::string meta_set_header_;
};

class Memcached final : public System {
 public:
  Memcached(std::string name, Endpoint endpoint, pid_t daemon)
      : name_(std::move(name)), endpoint_(std::move(endpoint)), daemon_(daemon) {}

  const std::string& name() const override { return name_; }
  std::optional<pid_t> daemon() const override { return daemon_; }

  Result<std::string> Version() override {
    Result<Stream> stream = Stream::Connect(endpoint_);
    if (!stream.ok()) return stream.error();
    return MemcachedConnection(std::move(*stream), 1, 0).Version();
  }

  std::vector<Manner> Manners(Operation operation) const override {
    std::vector<Manner> manners;
    const auto add = [&](int style, const std::string& name) {
      manners.push_back({style, Wait::kBlock, name});
      manners.push_back({style, Wait::kSpin, name + ", spinning"});
    };
    if (operation == Operation::kGet) {
      add(kClassic, "get");
      add(kMany, "multi-get");
      add(kMeta, "mg");
    } else {
      add(kClassic, "set");
      add(kMeta, "ms");
    }
    return manners;
  }

  Result<std::unique_ptr<Connection>> Connect(size_t depth, size_t value_size) override {
    Result<Stream> stream = Stream::Connect(endpoint_);
    if (!stream.ok()) return stream.error();
    return std::unique_ptr<Connection>(
        std::make_unique<MemcachedConnection>(std::move(*stream), depth, value_size));
  }

 private:
  const std::string name_;
  const Endpoint endpoint_;
  const pid_t daemon_;
};

}  // namespace

std::unique_ptr<System> MakeMemcached(std::string name, Endpoint endpoint, pid_t daemon) {
  return std::make_unique<Memcached>(std::move(name), std::move(endpoint), daemon);
}

}  // namespace farside::peers
