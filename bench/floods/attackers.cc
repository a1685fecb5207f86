#include "bench/floods/attackers.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/wire.h"

namespace farside::floods {
namespace {

using namespace std::chrono_literals;
namespace wire = fabric::tcp::wire;

constexpr size_t kMiB = size_t{1} << 20;

// Sockets of the attackers.
constexpr size_t kIdle = 4352;
constexpr size_t kStrangers = 1024;  // of these, that a node keeps
constexpr size_t kNoAnswers = 15;
constexpr size_t kHalves = 1000;
constexpr size_t kGarbage = 256;

// A connection to a port of this machine that does not wait; invalid if there is none.
Descriptor Connect(uint16_t port) {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) made.Close();
  return made;
}

// The bytes that the kernel takes now; 0 also if the node has hung up.
size_t Send(const Descriptor& to, std::span<const std::byte> bytes) {
  const ssize_t sent = send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent > 0 ? static_cast<size_t>(sent) : 0;
}
template <class T>
void SendObject(const Descriptor& to, const T& object) {
  Send(to, std::as_bytes(std::span(&object, 1)));
}

wire::Hello HelloAs(uint32_t client) {
  wire::Hello hello;
  hello.client = client;
  return hello;
}

// Throws away what has come from the node, and closes those connections that it has hung up on.
void CloseEnded(std::vector<Descriptor>& sockets) {
  std::vector<pollfd> looks;
  looks.reserve(sockets.size());
  for (const Descriptor& each : sockets) looks.push_back({.fd = each.get(), .events = POLLIN, .revents = 0});
  if (poll(looks.data(), looks.size(), 0) <= 0) return;
  std::array<std::byte, 4096> ignored;
  for (size_t i = 0; i < looks.size(); ++i) {
    if (looks[i].revents == 0) continue;
    if (recv(looks[i].fd, ignored.data(), ignored.size(), MSG_DONTWAIT) <= 0) sockets[i].Close();
  }
  std::erase_if(sockets, [](const Descriptor& each) { return !each.open(); });
}

// Keeps so many connections open, and makes new ones for those that were closed, a few at a time.
class Crowd : public Attacker {
 public:
  Crowd(uint16_t port, size_t size) : port_(port), size_(size) {}
  void Step() override {
    CloseEnded(sockets_);
    for (size_t i = 0; i < kAtOnce && sockets_.size() < size_; ++i) {
      Descriptor made = Connect(port_);
      if (!made.open()) return;
      ++connections_;
      Begin(made);
      sockets_.push_back(std::move(made));
    }
    for (const Descriptor& each : sockets_) GoOn(each);
  }
  void Stop() override { sockets_.clear(); }

 protected:
  virtual void Begin(const Descriptor&) {}
  virtual void GoOn(const Descriptor&) {}
  uint32_t NewClient() { return next_client_ += 0x10001; }

 private:
  static constexpr size_t kAtOnce = 64;

  const uint16_t port_;
  const size_t size_;
  uint32_t next_client_ = 0x1000;
  std::vector<Descriptor> sockets_;
};

// One that is refused, and sends without end.
class Streams final : public Crowd {
 public:
  explicit Streams(uint16_t port) : Crowd(port, 1), bytes_to_send_(256 << 10) {}

 private:
  void Begin(const Descriptor& made) override {
    wire::Hello hello = HelloAs(1);
    hello.version = 99;
    SendObject(made, hello);
  }
  void GoOn(const Descriptor& each) override {
    for (int i = 0; i < 16; ++i) {
      const size_t sent = Send(each, bytes_to_send_);
      bytes_ += sent;
      if (sent == 0) return;
    }
  }
  const std::vector<std::byte> bytes_to_send_;
};

// Each asks for much, takes nothing of it, and asks again after a while.
class NoAnswers final : public Crowd {
 public:
  explicit NoAnswers(uint16_t port) : Crowd(port, kNoAnswers) {}
  void Step() override {
    if (clock_.Now() - begun_ > 2s) {
      Stop();
      begun_ = clock_.Now();
    }
    Crowd::Step();
  }

 private:
  void Begin(const Descriptor& made) override {
    const int little = 4096;
    setsockopt(made.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
    SendObject(made, HelloAs(NewClient()));
    const std::array<uint64_t, 2> read = {0, 64 * kMiB};  // of 64 MiB at 0
    SendObject(made, wire::FrameHeader{.body_bytes = sizeof(read), .verbs = 1});
    SendObject(made, read);
  }
  SteadyClock clock_;
  Nanos begun_{0};
};

// Each sends a mebibyte of a frame of two.
class HalfFrames final : public Crowd {
 public:
  explicit HalfFrames(uint16_t port) : Crowd(port, kHalves), half_(kMiB) {}

 private:
  void Begin(const Descriptor& made) override {
    SendObject(made, HelloAs(NewClient()));
    SendObject(made, wire::FrameHeader{.body_bytes = 2 * kMiB, .verbs = 1});
    bytes_ += Send(made, half_);
  }
  const std::vector<std::byte> half_;
};

// Each says what is no Hello, and is refused with a line of the log.
class Garbage final : public Crowd {
 public:
  explicit Garbage(uint16_t port) : Crowd(port, kGarbage) {}

 private:
  void Begin(const Descriptor& made) override { SendObject(made, ~uint64_t{0}); }
};

class Idle final : public Crowd {
 public:
  explicit Idle(uint16_t port) : Crowd(port, kIdle) {}
};

template <class Kind>
std::unique_ptr<Attacker> Make(uint16_t port) {
  return std::make_unique<Kind>(port);
}

}  // namespace

const std::vector<Attack>& Attacks() {
  static const std::vector<Attack> attacks = {
      {"streams", "4 sockets are refused and go on sending", Make<Streams>, 1, 4},
      {"idle", "4,352 sockets say nothing, and come back when they are closed", Make<Idle>, kStrangers},
      {"answers", "15 clients ask for 64 MiB and take none of it, every 2 s", Make<NoAnswers>, kNoAnswers},
      {"halves", "1,000 clients send 1 MiB of a request of 2 MiB", Make<HalfFrames>, kHalves},
      {"log", "256 sockets send garbage, and the log is not read", Make<Garbage>, kGarbage, 1, true},
  };
  return attacks;
}

}  // namespace farside::floods
