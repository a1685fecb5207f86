// A node with its server, fabrics that reach it, and a peer that may send any bytes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/server.h"
#include "fabric/tcp/tcp.h"
#include "fabric/tcp/wire.h"

namespace farside::fabric::tcp {

using Bytes = std::vector<std::byte>;

inline FarAddr At(uint64_t offset, uint16_t node = 0) { return FarAddr(NodeId{node}, offset); }

// What a server logs.
class LogLines {
 public:
  explicit LogLines(LogLevel level) : level_(level) {}
  Logger& logger() { return logger_; }

  size_t Count(std::string_view part) {
    const std::scoped_lock lock(mutex_);
    return CountLocked(part);
  }
  // Waits until there is such a line.
  void Await(std::string_view part, size_t lines = 1) {
    std::unique_lock lock(mutex_);
    more_.wait(lock, [&] { return CountLocked(part) >= lines; });
  }
  // A thread that logs such a line stays there until LetGo.
  void HoldUp(std::string part) {
    const std::scoped_lock lock(mutex_);
    held_up_ = std::move(part);
  }
  void LetGo() {
    HoldUp("");
    more_.notify_all();
  }

 private:
  size_t CountLocked(std::string_view part) const {
    size_t count = 0;
    for (const std::string& line : lines_) count += line.find(part) != std::string::npos ? 1 : 0;
    return count;
  }

  const LogLevel level_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> lines_;
  std::string held_up_;
  Logger logger_{level_, [this](std::string_view line) {
                   std::unique_lock lock(mutex_);
                   lines_.emplace_back(line);
                   more_.notify_all();
                   more_.wait(lock, [&] { return held_up_.empty() || line.find(held_up_) == line.npos; });
                 }};
};

// One thread, so that whatever one connection does to it would hold up the others.
inline ServerOptions OneThread() {
  ServerOptions options;
  options.threads = 1;
  return options;
}

class TestNode {
 public:
  explicit TestNode(uint64_t bytes = 4096, ServerOptions options = OneThread(), memory::RegionId id = {1, 2},
                    LogLevel log = LogLevel::kDebug, const Clock* clock = nullptr)
      : log_(log),
        region_(*memory::Region::Anonymous(bytes)),
        stripes_(std::make_unique<memory::StripeTable>()),
        node_(region_.bytes(), *stripes_, id, clock) {
    auto listening = Server::Listen(node_, options, log_.logger());
    EXPECT_TRUE(listening.ok()) << listening.error().ToString();
    server_ = std::move(*listening);
  }

  memory::ServedNode& node() { return node_; }
  memory::StripeTable& stripes() { return *stripes_; }
  Server& server() { return *server_; }
  LogLines& log() { return log_; }
  uint16_t port() const { return server_->port(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  uint64_t Word(uint64_t offset) { return node_.memory().Load(offset); }

  Options ClientOptions() const {
    Options options;
    options.addresses = {address()};
    return options;
  }
  std::unique_ptr<TcpFabric> Open() const { return Open(ClientOptions()); }
  static std::unique_ptr<TcpFabric> Open(const Options& options) {
    auto fabric = TcpFabric::Open(options);
    EXPECT_TRUE(fabric.ok()) << fabric.error().ToString();
    return std::move(*fabric);
  }

 private:
  LogLines log_;
  memory::Region region_;
  std::unique_ptr<memory::StripeTable> stripes_;
  memory::ServedNode node_;
  std::unique_ptr<Server> server_;
};

inline std::unique_ptr<Client> ConnectTo(Fabric& fabric) {
  auto client = fabric.Connect();
  EXPECT_TRUE(client.ok()) << client.error().ToString();
  return std::move(*client);
}

inline Task<uint64_t> AddTo(Client& client, FarAddr at, uint64_t delta) {
  Op op(client, OpKind::kUpdate);
  const uint64_t old = co_await op.InOrder(Faa(at, delta));
  co_return old;
}
inline Task<uint64_t> ReadFrom(Client& client, FarAddr at) {
  Op op(client, OpKind::kSearch);
  const uint64_t word = co_await op.InOrder(Read<uint64_t>(at));
  co_return word;
}
// Another client that uses the node, and must not notice anything.
class Bystander {
 public:
  explicit Bystander(TestNode& node, uint64_t offset = 4088)
      : fabric_(node.Open()), client_(ConnectTo(*fabric_)), at_(At(offset)) {}
  void ExpectServed() {
    const Result<uint64_t> old = Run(*client_, AddTo(*client_, at_, 1));
    ASSERT_TRUE(old.ok()) << old.error().ToString();
    EXPECT_EQ(*old, trips_++);
  }
  Client& client() { return *client_; }

 private:
  std::unique_ptr<TcpFabric> fabric_;
  std::unique_ptr<Client> client_;
  FarAddr at_;
  uint64_t trips_ = 0;
};

template <class T>
Bytes BytesOf(const T& object) {
  const auto bytes = std::as_bytes(std::span(&object, 1));
  return Bytes(bytes.begin(), bytes.end());
}
inline void Append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

inline wire::Hello HelloAs(uint32_t client) {
  wire::Hello hello;
  hello.client = client;
  return hello;
}

inline Bytes FrameOf(std::vector<Verb> verbs) {
  wire::FrameHeader header;
  header.verbs = static_cast<uint8_t>(verbs.size());
  for (const Verb& verb : verbs) header.body_bytes += static_cast<uint32_t>(wire::EncodedBytes(verb));
  Bytes frame = BytesOf(header);
  frame.resize(sizeof(header) + header.body_bytes);
  std::byte* to = frame.data() + sizeof(header);
  for (const Verb& verb : verbs) to = wire::EncodeVerb(verb, to);
  return frame;
}

// A socket to a node of this machine. It waits, but not for ever.
class RawPeer {
 public:
  // From an address of this machine, 127.0.0.1 unless another is named.
  explicit RawPeer(uint16_t port, const char* from = "127.0.0.1")
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, from, &address.sin_addr), 1);
    EXPECT_EQ(bind(fd(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }

  int fd() const { return socket_.get(); }
  void Hangup() { socket_.Close(); }
  // The node may have closed it already.
  void Send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes = bytes.subspan(static_cast<size_t>(sent));
    }
  }
  void Send(std::string_view text) { Send(std::as_bytes(std::span(text))); }
  // Fewer if the node hung up before.
  Bytes Receive(size_t bytes) {
    Bytes into(bytes);
    size_t have = 0;
    while (have < bytes) {
      const ssize_t received = recv(fd(), into.data() + have, bytes - have, 0);
      if (received <= 0) break;
      have += static_cast<size_t>(received);
    }
    into.resize(have);
    return into;
  }
  // Waits until it has.
  bool NodeHungUp() {
    std::array<std::byte, 4096> ignored;
    while (true) {
      const ssize_t received = recv(fd(), ignored.data(), ignored.size(), 0);
      if (received == 0) return true;
      if (received < 0) return errno == ECONNRESET;
    }
  }

  struct Answer {
    wire::Welcome welcome;
    std::string message;
  };
  Answer Greet(const wire::Hello& hello) {
    Send(BytesOf(hello));
    Answer answer;
    const Bytes head = Receive(sizeof(wire::Welcome));
    EXPECT_EQ(head.size(), sizeof(wire::Welcome));
    if (head.size() != sizeof(wire::Welcome)) return answer;
    answer.welcome = wire::Load<wire::Welcome>(head.data());
    const Bytes message = Receive(answer.welcome.message_bytes);
    answer.message.assign(reinterpret_cast<const char*>(message.data()), message.size());
    return answer;
  }

 private:
  Descriptor socket_;
};

inline size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace farside::fabric::tcp
