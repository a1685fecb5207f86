// A connection of a client, as its node sees it. It belongs to one thread; CutOff and IsStill may come from
// others.
//
//   kSecuring --> kGreeting --> kServing <--> kParked      a fence that it asked for is not done yet
//        \             \            \            \ .
//         `-------------`------------`------------`--> kLeaving --> kClosed
//
// What it may hold of memory is bounded: received, one frame of the largest size; to be sent, kMostUnsent and
// the answer of one frame. While the client does not take its answers, its next frames are neither executed
// nor received. What all connections together may hold is bounded, too: a frame for which there is no memory
// ends its connection, as its rest cannot be skipped, and a frame whose answers do not fit is refused without
// being executed.
//
// A client that has to leave is told why, if there is a reason, and gets the time to read it: a socket that
// is closed while something unread has arrived is reset, and with it what was still on its way to the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "fabric/memory/gate.h"
#include "fabric/memory/served_node.h"
#include "fabric/tcp/byte_queue.h"
#include "fabric/tcp/mailbox.h"
#include "fabric/tcp/server_state.h"
#include "fabric/tcp/transport.h"
#include "fabric/tcp/wire.h"

namespace farside::fabric::tcp {

class Connection final : public memory::ServedClient, public std::enable_shared_from_this<Connection> {
 public:
  enum class State : uint8_t { kSecuring, kGreeting, kServing, kParked, kLeaving, kClosed };

  // `server` outlives what the thread does with it; `peer` is for people.
  Connection(Transport transport, std::string peer, ServerState& server, std::shared_ptr<Mailbox> mailbox);

  // ---- of the guest, from any thread
  void CutOff() override;
  bool IsStill() override { return !gate_.OpenTurn().has_value(); }

  // ---- by its thread
  // Goes as far as it can without waiting. `scratch` is the thread's. True: there is more to do at once.
  bool Advance(wire::Frame& scratch);
  void OnCutOff();
  void OnFenceDone();
  // The peer is gone, in both directions.
  void OnHangup();
  // The server ends.
  void OnStop();
  // It should have come in, or gone, by now.
  void OnDeadline();
  void Close();

  bool PeerSharesProcessor() const { return transport_.PeerSharesProcessor(); }
  int fd() const { return transport_.fd(); }
  State state() const { return state_; }
  // Waits for a peer that may never do anything.
  bool hurries() const {
    return state_ == State::kSecuring || state_ == State::kGreeting || state_ == State::kLeaving;
  }
  Nanos deadline() const { return deadline_; }
  // Bytes, since it came in.
  uint64_t received() const { return received_; }
  // What it waits for at its socket, as epoll spells it.
  uint32_t Interest() const;
  uint32_t registered_interest = 0;  // the thread's note

 private:
  // A frame with a fence in it, which is executed in pieces. Its verbs point into in_, which rests meanwhile.
  struct Parked {
    wire::Frame frame;
    size_t next = 0;       // the verb to go on with
    bool changed = false;  // some verb before it has changed something
    size_t total_bytes = 0;
    std::vector<std::byte> answers;
    std::byte* next_answer = nullptr;
  };

  static constexpr size_t kReceiveRoom = size_t{64} << 10;
  static constexpr size_t kMostUnsent = size_t{256} << 10;
  static constexpr int kRounds = 16;  // until others have their turn
  static constexpr size_t kVerbsPerSend = 32;
  static constexpr size_t kVerbsAhead = 16;

  void Secure();
  void Greet();
  void Admit(const wire::Hello& hello);
  void SendWelcome(uint8_t status, std::string_view message);
  void Refuse(ErrorCode code, const std::string& message);
  bool Serve(wire::Frame& scratch);
  // The two next return false if they cannot go on now.
  bool Receive(bool& more);
  bool ExecuteNext(wire::Frame& scratch);
  // Returns how many verbs it has looked at.
  size_t PrefetchAhead();
  void Linger();

  bool IsForbidden(const Verb& verb) const;
  bool Execute(wire::Frame& frame);
  void ExecuteCall(const Verb& verb);
  void ExecuteMemory(Verb& verb, std::byte*& next_answer);
  void ContinueParked();
  void FinishParked();

  std::byte* QueueAnswers(uint64_t body_bytes);
  void QueueMessage(wire::ReplyKind kind, ErrorCode code, std::string_view message);
  // False: the socket takes no more now, or is broken.
  bool Flush();

  // Whether it may take so much memory at once, with what others have. If so, Account tells later what became
  // of it.
  bool Claim(size_t growth);
  void Account();
  std::string NoMemory() const;

  // True: the visit of its host ends with it.
  bool Depart();
  void SayGoodbye(ErrorCode code, std::string_view message);
  void BeginLeaving();
  void DropHostile(std::string_view what);
  void Lost(std::string_view why);

  ServerState& server_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::string peer_;
  Transport transport_;
  memory::Gate gate_;
  uint64_t received_ = 0;
  ByteQueue in_;
  ByteQueue out_;
  size_t claimed_ = 0;  // its part of ServerState::buffered
  std::unique_ptr<Parked> parked_;
  ClientId id_ = ClientId::kNone;  // while it is admitted
  std::string host_;  // for people, once it is admitted: its address, and the name in its certificate
  wire::Access access_ = wire::Access::kReadWrite;
  State state_ = State::kSecuring;
  bool wants_write_ = false;  // TLS does, or something is unsent
  bool cut_off_ = false;      // and it has not heard of it yet
  bool said_all_ = false;     // leaving: nothing more is sent
  Nanos deadline_;
};

}  // namespace farside::fabric::tcp
