// Unix sockets as the shm fabric uses them: where they are, and messages with descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "farside/result.h"

namespace farside::fabric::shm {

// A node is named by the path of its socket (anything with a slash), or by a name of letters, digits, '-',
// '_' and '.', whose socket is one of, in this order,
//
//   $XDG_RUNTIME_DIR/farside/NAME.sock   of a user who is logged in
//   /run/farside/NAME.sock               of the system
//   /tmp/farside-UID/NAME.sock           of a user without a session
//
// Where a daemon makes its socket: the first of them that is its own. Makes the folder.
Result<std::string> PathToServe(const std::string& node);
// Where a client finds it: the first that exists. kNotFound if none does.
Result<std::string> PathToReach(const std::string& node);

// kNotFound: there is no daemon; kPermissionDenied: it belongs to another user.
Result<Descriptor> ConnectTo(const std::string& path);

// Sends one message of two parts, with descriptors. With `wait`, until there is room for it, else false.
// False also if the other side is gone.
enum class Wait : uint8_t { kNo, kYes };
bool Send(int socket, std::span<const std::byte> head, std::span<const std::byte> body, Wait wait,
          std::span<const int> descriptors = {});

struct Received {
  enum class Kind : uint8_t {
    kMessage,
    kNothing,  // nothing is there yet
    kEnd,      // the other side is gone
    kBroken,   // a message that is too long, or an error of the socket
  };
  Kind kind;
  size_t bytes = 0;
  std::vector<Descriptor> descriptors;
};
Received Receive(int socket, std::span<std::byte> into, Wait wait);

// Waits until there is something to receive. False if there is not within `milliseconds`.
bool AwaitMessage(int socket, int milliseconds);

// Whether the other side is still there and has nothing to say. Does not wait.
bool IsQuiet(int socket);

template <class T>
std::span<const std::byte> BytesOf(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace farside::fabric::shm
