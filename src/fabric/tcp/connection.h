// A connection of a client, as its node sees it. It belongs to one thread at a time; CutOff and IsStill may
// come from others.
//
//   door           .  a thread that serves clients                    .  door
//                  .                                                  .
//   kSecuring      .
//       |          .
//   kGreeting --> kExpected --> kServing <--> kParked                 .
//        \         .      \            \            \                 .
//         `---------------`------------`------------`----------------> kLeaving --> kClosed
//
// The thread at the door has the strangers, and a thread that serves clients has no other connections. So
// what strangers do takes no time of clients. kExpected: the Hello is one of a client, which is let in by the
// thread that will serve it. kParked: a fence that the client asked for is not done yet.
//
// What it may hold of memory is bounded: received, one frame of the largest size; to be sent, kMostUnsent and
// the answer of one frame. While the client does not take its answers, its next frames are neither executed
// nor received. What all connections together may hold is bounded, too (buffer_budget.h): a frame for which
// there is no memory ends its connection, as its rest cannot be skipped, and a frame whose answers do not fit
// is refused without being executed. A client that keeps the node waiting has to make progress
// (progress_watch.h).
//
// A client that has to leave is told why, if there is a reason, and gets the time to read it: a socket that
// is closed while something unread has arrived is reset, and with it what was still on its way to the client.
// How much such a peer may still send is bounded, for each turn and in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "fabric/memory/gate.h"
#include "fabric/memory/reader_guard.h"
#include "fabric/memory/served_node.h"
#include "fabric/tcp/buffer_budget.h"
#include "fabric/tcp/byte_queue.h"
#include "fabric/tcp/mailbox.h"
#include "fabric/tcp/parked_frame.h"
#include "fabric/tcp/progress_watch.h"
#include "fabric/tcp/reply_queue.h"
#include "fabric/tcp/server_state.h"
#include "fabric/tcp/transport.h"
#include "fabric/tcp/wire.h"

namespace farside::fabric::tcp {

class Connection final : public memory::ServedClient, public std::enable_shared_from_this<Connection> {
 public:
  enum class State : uint8_t { kSecuring, kGreeting, kExpected, kServing, kParked, kLeaving, kClosed };

  // `server` outlives what the thread does with it.
  Connection(Transport transport, const SocketAddress& peer, ServerState& server);

  // ---- memory::ServedClient, from any thread
  void CutOff() override;
  bool IsStill() override { return !gate_.OpenTurn().has_value(); }

  // ---- by its thread
  // Of a thread that serves clients: it comes first. The thread's memory outlives what the thread does with
  // the connection.
  void ArriveAt(memory::ThreadMemory& memory, std::shared_ptr<Mailbox> mailbox);
  // Goes as far as it can without waiting. `scratch` is the thread's. True: there is more to do at once.
  bool Advance(wire::Frame& scratch);
  void OnCutOff();
  void OnFenceDone();
  // The peer is gone, in both directions, or says nothing more.
  void OnHangup();
  // The server ends.
  void OnStop();
  // Another stranger needs its place in the lobby.
  void OnMakeRoom();
  // IsLate was true.
  void OnDeadline();
  void Close();

  bool PeerSharesProcessor() const { return transport_.PeerSharesProcessor(); }
  int fd() const { return transport_.fd(); }
  State state() const { return state_; }
  uint64_t network() const { return network_; }
  // It is no client yet, or not any more.
  bool IsStranger() const {
    return state_ == State::kSecuring || state_ == State::kGreeting || state_ == State::kLeaving;
  }
  // Whether it waits for a peer that may never do anything.
  bool HasDeadline() const { return state_ == State::kServing ? KeepsWaiting() : IsStranger(); }
  // To be asked now and then of one that has a deadline: whether it should have come in, gone, or made
  // progress by now.
  bool IsLate(Nanos now);
  // Bytes, since it came in.
  uint64_t received() const { return progress_.received(); }
  // Whether it is in the middle of a large request: to take in more of it is as much work as many small
  // requests.
  bool IsReceivingLarge() const {
    return state_ == State::kServing && !in_.empty() && TotalToReceive() > kOwnBuffer;
  }
  // What it waits for at its socket, as epoll spells it.
  uint32_t Interest() const;
  // Notes of the thread.
  uint32_t registered_interest = 0;
  bool has_turn_ahead = false;  // there is more to do for it at once: it stands in the list of those

 private:
  static constexpr size_t kOwnBuffer = BufferShare::kOwnBuffer;
  // What the reply of a Call may have without being asked for; how long it is shows afterwards.
  static constexpr size_t kCallBytes = kOwnBuffer / 2;
  static constexpr size_t kReceiveRoom = kOwnBuffer / 2;  // so that a frame of so much fits in kOwnBuffer
  static constexpr size_t kReceiveAtOnce = kOwnBuffer / 4;
  static constexpr size_t kMostUnsent = size_t{256} << 10;
  // Until others have their turn: looks at the socket, and verbs. To move so many bytes is as much work as a
  // verb. A turn takes some 50 us at most, unless a single frame takes longer.
  static constexpr int kRounds = 16;
  static constexpr size_t kVerbsPerTurn = 128;
  static constexpr size_t kBytesPerVerb = 2048;
  static constexpr size_t kVerbsPerSend = 32;
  // What one that is leaving may still send. A client may have been in the middle of a large request, and
  // both of its sockets hold some of it.
  static constexpr size_t kMostOfStranger = size_t{256} << 10;
  static constexpr size_t kMostOfClient = size_t{16} << 20;

  void Secure();
  void Greet();
  void Answer(const wire::Hello& hello);
  void Admit();
  Status AdmitAs(ClientId id);
  void SendWelcome(uint8_t status, std::string_view message);
  void Refuse(ErrorCode code, const std::string& message);
  bool Serve(wire::Frame& scratch);
  // The two next return false if they cannot go on now.
  bool Receive(bool& more);
  // What the frame that is being received has in all, with room for what follows it.
  size_t TotalToReceive() const;
  bool ExecuteNext(wire::Frame& scratch);
  void Linger();

  bool IsForbidden(const Verb& verb) const;
  // The memory that a frame takes to be executed and answered.
  size_t GrowthToExecute(const wire::Frame& frame) const;
  bool Execute(wire::Frame& frame);
  void ExecuteCall(const Verb& verb);
  // Executes a frame of READs, WRITEs and atomics. False: the connection ends, since one of them has
  // waited too long for a line (memory::LinePatience), or a reader may not execute it any more.
  bool AnswerMemory(wire::Frame& frame);
  void SendAwayFromLine(bool changed);
  void ContinueParked();
  void FinishParked();

  // False: the socket takes no more now, or is broken.
  bool Flush();

  bool KeepsWaiting() const { return !in_.empty() || !out_.empty() || tls_writes_; }
  // It takes no more frames until it has taken answers.
  bool IsFull() const { return out_.size() > kMostUnsent || waits_for_room_; }
  void CountBuffers();

  // True: the visit of its host ends with it.
  bool Depart();
  void SayGoodbye(ErrorCode code, std::string_view message);
  void BeginLeaving();
  void DropHostile(std::string_view what);
  void Lost(std::string_view why);

  void LogRefusal(std::string_view why);
  void LogClient(std::string_view what);

  ServerState& server_;
  // Of the thread that serves it, since it is expected there. They stay when it leaves: a fence may come
  // late.
  std::shared_ptr<Mailbox> mailbox_;
  memory::ThreadMemory* memory_ = nullptr;
  const uint64_t network_;
  const std::string peer_;
  Transport transport_;
  memory::Gate gate_;
  ByteQueue in_{kOwnBuffer};
  ReplyQueue out_{kOwnBuffer};
  BufferShare buffer_share_;
  ProgressWatch progress_;
  std::unique_ptr<ParkedFrame> parked_;  // its verbs point into in_
  ClientId id_ = ClientId::kNone;        // while it is admitted
  std::string host_;  // for people, once it is admitted: its address, and the name in its certificate
  wire::Access access_ = wire::Access::kReadWrite;
  std::unique_ptr<memory::ReaderGuard> guard_;  // of a client that may only read, if it may change anything
  State state_ = State::kSecuring;
  bool wants_write_ = false;     // TLS does, or something is unsent
  bool tls_writes_ = false;      // before it reads on: the peer has to take something first
  bool cut_off_ = false;         // and it has not heard of it yet
  bool said_all_ = false;        // leaving: nothing more is sent
  bool waits_for_room_ = false;  // its next frame: until answers were taken, as there is no memory for more
  bool was_client_ = false;
  size_t discarded_ = 0;  // leaving: bytes

  Nanos deadline_;  // of a stranger
};

}  // namespace farside::fabric::tcp
