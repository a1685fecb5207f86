// A connection of bytes to a server on this machine, and what has arrived of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bench/peers/system.h"
#include "farside/result.h"

namespace farside::peers {

// Where a server listens: a Unix socket, or a port of the loopback interface.
struct Endpoint {
  std::string path;  // empty: the port counts
  uint16_t port = 0;

  std::string ToString() const;
};

class Stream {
 public:
  // Without Nagle's algorithm, which would hold small requests back.
  static Result<Stream> Connect(const Endpoint& endpoint);
  Stream(Stream&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream();

  // As much as the kernel takes at once, which is all of it unless the server is slow to read. Waits for
  // nothing.
  Result<size_t> Send(std::string_view bytes);
  // Waits until there is something to receive, or room to send. True: there is something to receive.
  Result<bool> AwaitEither();
  // At least one byte, and as many as are there. kUnavailable if nothing comes for kPatience, or the server
  // hangs up.
  Result<size_t> Receive(char* to, size_t room, Wait wait);

  static constexpr int kPatienceSeconds = 10;

 private:
  explicit Stream(int socket) : socket_(socket) {}
  Result<size_t> Spin(char* to, size_t room);

  int socket_;
};

// What has arrived and was not consumed yet, in one piece. Grows to the largest token there is, up to a
// bound.
class Inbox {
 public:
  explicit Inbox(size_t capacity) : bytes_(capacity, '\0') {}

  std::string_view unread() const { return std::string_view(bytes_).substr(begin_, end_ - begin_); }
  void Consume(size_t bytes);
  // Receives once. Views of what is unread are invalid afterwards.
  Status Fill(Stream& stream, Wait wait);

  static constexpr size_t kMostBytes = size_t{1} << 30;

 private:
  std::string bytes_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace farside::peers
