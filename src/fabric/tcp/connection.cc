#include "fabric/tcp/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "fabric/memory/line_patience.h"
#include "fabric/tcp/execute_memory.h"
#include "fabric/tcp/prefetch_ahead.h"

namespace farside::fabric::tcp {

using Outcome = Transport::Outcome;

Connection::Connection(Transport transport, const SocketAddress& peer, ServerState& server)
    : server_(server),
      network_(peer.Network()),
      peer_(peer.ToString()),
      transport_(std::move(transport)),
      buffer_share_(server.buffer_budget),
      progress_(server.options.stall_timeout),
      deadline_(server.clock.Now() + server.options.greeting_timeout) {}

void Connection::CutOff() {
  gate_.Close();
  mailbox_->Send({LetterKind::kCutOff, shared_from_this()});
}

void Connection::ArriveAt(memory::ThreadMemory& memory, std::shared_ptr<Mailbox> mailbox) {
  memory_ = &memory;
  mailbox_ = std::move(mailbox);
}

// One that is parked reads nothing, and so would not notice that the peer has hung up.
uint32_t Connection::Interest() const {
  const uint32_t hangup = state_ == State::kParked ? uint32_t{EPOLLRDHUP} : 0;
  const bool full = state_ == State::kServing && (IsFull() || tls_writes_);
  const bool reads = state_ != State::kParked && state_ != State::kClosed && !full;
  return hangup | (reads ? uint32_t{EPOLLIN} : 0) | (wants_write_ ? uint32_t{EPOLLOUT} : 0);
}

bool Connection::Advance(wire::Frame& scratch) {
  if (state_ == State::kSecuring) Secure();
  if (state_ == State::kGreeting) Greet();
  if (state_ == State::kExpected && memory_ != nullptr) Admit();  // once it has arrived there
  if (state_ == State::kServing) {
    const bool again = Serve(scratch);
    if (!KeepsWaiting()) progress_.Rest();
    CountBuffers();
    return again;
  }
  if (state_ == State::kParked) Flush();
  if (state_ == State::kLeaving) Linger();
  return false;
}

// ---- coming in ---------------------------------------------------------------------------------------

void Connection::Secure() {
  switch (transport_.Handshake()) {
    case Outcome::kMoved:
      wants_write_ = false;
      state_ = State::kGreeting;
      access_ = server_.options.plain_access;
      if (transport_.secure()) {
        access_ = PeerMayWrite(transport_.ssl()) ? wire::Access::kReadWrite : wire::Access::kReadOnly;
      }
      return;
    case Outcome::kWantRead: wants_write_ = false; return;
    case Outcome::kWantWrite: wants_write_ = true; return;
    case Outcome::kEnd:
    case Outcome::kBroken:
      LogRefusal(fmt::format("no TLS with it ({})", transport_.failure()));
      transport_.ForgetTls();
      wants_write_ = false;
      return BeginLeaving();
  }
}

void Connection::Greet() {
  while (in_.size() < sizeof(wire::Hello)) {
    std::byte* const to = in_.Reserve(sizeof(wire::Hello));
    const Transport::Moved moved = transport_.Receive({to, sizeof(wire::Hello) - in_.size()});
    if (moved.outcome == Outcome::kWantRead || moved.outcome == Outcome::kWantWrite) return;
    if (moved.outcome != Outcome::kMoved) {
      server_.log.Debug("tcp: {} went away without a word", peer_);
      return Close();
    }
    in_.Commit(moved.bytes);
    // So that something that is no client of ours is not waited for.
    if (in_.size() >= sizeof(wire::kMagic) && wire::Load<uint64_t>(in_.bytes().data()) != wire::kMagic) {
      LogRefusal("it is no client of Farside");
      return Close();
    }
  }
  Answer(wire::Load<wire::Hello>(in_.bytes().data()));
}

void Connection::Answer(const wire::Hello& hello) {
  if (hello.version != wire::kVersion) {
    return Refuse(
        ErrorCode::kVersionMismatch,
        fmt::format("this node speaks version {} of the protocol and the client version {}; install the same "
                    "release on both",
                    wire::kVersion, hello.version));
  }
  if (hello.zero != 0 || (hello.flags & ~wire::Hello::kLookOnly) != 0) {
    return Refuse(ErrorCode::kInvalidArgument, "the Hello has bits that this version does not know");
  }
  if ((hello.flags & wire::Hello::kLookOnly) != 0) {
    server_.log.Debug("tcp: {} looked", peer_);
    SendWelcome(0, "");
    return BeginLeaving();
  }
  state_ = State::kExpected;
}

void Connection::Admit() {
  const auto hello = wire::Load<wire::Hello>(in_.bytes().data());
  in_.Consume(sizeof(hello));
  if (const Status counted = server_.client_limits.Come(network_); !counted.ok())
    return Refuse(counted.error().code(), counted.error().message());
  const auto id = static_cast<ClientId>(hello.client);
  if (const Status admitted = AdmitAs(id); !admitted.ok()) {
    server_.client_limits.Leave(network_);
    return Refuse(admitted.error().code(), admitted.error().message());
  }
  id_ = id;
  was_client_ = true;
  state_ = State::kServing;
  const std::string name = transport_.secure() ? PeerName(transport_.ssl()) : "";
  const std::string_view access = access_ == wire::Access::kReadOnly ? ", to read only" : "";
  server_.log.Debug("tcp: client {} came from {}{}{}", Number(id_), peer_,
                    transport_.secure() ? fmt::format(" as '{}'", name) : "", access);
  host_ = peer_.substr(0, peer_.rfind(':'));
  if (transport_.secure()) host_ += fmt::format(", '{}'{}", name, access);
  const Nanos now = server_.clock.Now();
  if (server_.visits.Come(host_, now)) server_.client_log.Info(now, "tcp: {} came", host_);
  SendWelcome(0, "");
}

// The guard first: an id that no guard objects to, and that the node admits then, has not been used between.
Status Connection::AdmitAs(ClientId id) {
  if (access_ == wire::Access::kReadOnly && server_.options.new_reader_guard) {
    Result<std::unique_ptr<memory::ReaderGuard>> guard =
        server_.options.new_reader_guard(memory_->Begin(), id);
    if (!guard.ok()) return guard.error();
    guard_ = std::move(*guard);
  }
  return server_.node.Admit(id, shared_from_this());
}

void Connection::SendWelcome(uint8_t status, std::string_view message) {
  message = message.substr(0, wire::kMaxMessageBytes);
  wire::Welcome welcome;
  welcome.status = status;
  welcome.access = access_;
  welcome.message_bytes = static_cast<uint32_t>(message.size());
  if (status == 0) {
    welcome.region_id = server_.node.region_id();
    welcome.region_bytes = server_.node.region_bytes();
  }
  out_.Append(std::as_bytes(std::span(&welcome, 1)));
  out_.Append(std::as_bytes(std::span(message)));
  Flush();
}

void Connection::Refuse(ErrorCode code, const std::string& message) {
  LogRefusal(message);
  SendWelcome(wire::StatusOf(code), message);
  BeginLeaving();
}

// ---- serving -----------------------------------------------------------------------------------------

bool Connection::Serve(wire::Frame& scratch) {
  const uint64_t moved_before = progress_.moved();
  size_t verbs = 0;
  const auto is_turn_over = [&] {
    return verbs + (progress_.moved() - moved_before) / kBytesPerVerb >= kVerbsPerTurn;
  };
  bool may_receive = true;
  for (int round = 0; round < kRounds; ++round) {
    size_t unsent = 0;  // verbs
    size_t ahead = 0;
    while (out_.size() <= kMostUnsent && !is_turn_over()) {
      if (ahead == 0) ahead = PrefetchAhead(in_.bytes(), server_.node);
      if (!ExecuteNext(scratch)) break;
      ahead -= std::min<size_t>(ahead, scratch.count);
      verbs += scratch.count;
      unsent += scratch.count;
      // In pieces: the client takes the first answers while the next ones are made.
      if (unsent >= kVerbsPerSend) {
        Flush();
        unsent = 0;
      }
    }
    const bool stalled = IsFull();
    if (!out_.empty()) Flush();
    if (state_ != State::kServing) return false;
    if (stalled) {
      if (out_.empty()) waits_for_room_ = false;
      // A client that takes no answers is gone on with when its socket can be written.
      if (IsFull()) return false;
      continue;
    }
    // Of a large request, one piece is a turn.
    if (is_turn_over() || (round > 0 && IsReceivingLarge())) return true;
    if (!may_receive || !Receive(may_receive)) return false;
  }
  return state_ == State::kServing;
}

bool Connection::Receive(bool& more) {
  if (in_.room() < kReceiveRoom) {
    const size_t total = TotalToReceive();
    if (!buffer_share_.Claim(in_.GrowthOf(total, kReceiveRoom))) {
      const std::string why = server_.buffer_budget.Refusal();
      LogClient(fmt::format("is sent away: {}", why));
      SayGoodbye(ErrorCode::kUnavailable, why);
      return false;
    }
    in_.ReserveOf(total, kReceiveRoom);
  }
  std::byte* const to = in_.Reserve(kReceiveRoom);
  const size_t room = std::min(in_.room(), kReceiveAtOnce);  // others have their turn too
  const Transport::Moved moved = transport_.Receive({to, room});
  tls_writes_ = moved.outcome == Outcome::kWantWrite;
  wants_write_ = tls_writes_ || !out_.empty();
  switch (moved.outcome) {
    case Outcome::kMoved:
      in_.Commit(moved.bytes);
      progress_.Received(moved.bytes);
      more = moved.bytes == room || transport_.secure();
      return true;
    case Outcome::kWantRead:
    case Outcome::kWantWrite: return false;
    case Outcome::kEnd: Lost("it disconnected"); return false;
    case Outcome::kBroken: Lost(transport_.failure()); return false;
  }
  return false;
}

size_t Connection::TotalToReceive() const {
  if (in_.size() < sizeof(wire::FrameHeader)) return kReceiveRoom;
  const auto header = wire::Load<wire::FrameHeader>(in_.bytes().data());  // which was checked
  return sizeof(header) + header.body_bytes + kReceiveRoom;
}

bool Connection::ExecuteNext(wire::Frame& scratch) {
  if (state_ != State::kServing || in_.size() < sizeof(wire::FrameHeader)) return false;
  const std::span<const std::byte> bytes = in_.bytes();
  const auto header = wire::Load<wire::FrameHeader>(bytes.data());
  if (const char* wrong = wire::CheckHeader(header)) {
    DropHostile(wrong);
    return false;
  }
  const size_t total = sizeof(header) + header.body_bytes;
  if (bytes.size() < total) return false;
  const char* const wrong = wire::DecodeFrame(header, bytes.subspan(sizeof(header), header.body_bytes),
                                              server_.node.region_bytes(), scratch);
  if (wrong != nullptr) {
    DropHostile(wrong);
    return false;
  }
  const std::span<const Verb> verbs(scratch.verbs.data(), scratch.count);
  const bool forbidden =
      access_ == wire::Access::kReadOnly &&
      std::any_of(verbs.begin(), verbs.end(), [this](const Verb& verb) { return IsForbidden(verb); });
  if (!buffer_share_.Claim(forbidden ? out_.GrowthForReply(ReplyQueue::kMessageBytes)
                                     : GrowthToExecute(scratch))) {
    // If this reply is small, it has room as soon as those before it were taken.
    waits_for_room_ = !out_.empty();
    if (waits_for_room_) return false;
    out_.AddError(ErrorCode::kContended, server_.buffer_budget.Refusal());
  } else if (forbidden) {
    out_.AddError(
        ErrorCode::kPermissionDenied,
        "this client may only read; to write, connect with a certificate that has the organizational unit "
        "read-write");
  } else if (!Execute(scratch)) {
    return false;
  }
  in_.Consume(total);
  if (server_.options.loses_answer && server_.options.loses_answer(verbs)) {
    out_.Clear();
    Lost("a test wanted it so");
  }
  return true;
}

size_t Connection::GrowthToExecute(const wire::Frame& frame) const {
  const size_t reply = sizeof(wire::ReplyHeader) + frame.answer_bytes;
  if (!frame.has_control) return out_.GrowthForReply(reply);
  if (frame.verbs[0].kind == VerbKind::kCall) return out_.GrowthForReply(kCallBytes);
  return out_.GrowthForReply(reply) + frame.answer_bytes;  // answers wait until the fence is done
}

bool Connection::IsForbidden(const Verb& verb) const {
  if (verb.kind == VerbKind::kRead) return false;
  return guard_ == nullptr || !guard_->May(verb);
}

// False: it is cut off, or goes on later.
bool Connection::Execute(wire::Frame& frame) {
  if (frame.has_control && frame.verbs[0].kind != VerbKind::kCall) {
    parked_ = std::make_unique<ParkedFrame>(frame);
    ContinueParked();
    return false;
  }
  if (!frame.mutates) {
    // READs take no effect, so no fence has to wait for them: looking at the gate is enough.
    if (gate_.closed()) {
      OnCutOff();
      return false;
    }
    return AnswerMemory(frame);
  }
  if (!gate_.Enter()) {
    gate_.Leave();
    OnCutOff();
    return false;
  }
  bool executed = true;
  if (frame.has_control) {
    ExecuteCall(frame.verbs[0]);
  } else {
    executed = AnswerMemory(frame);
  }
  gate_.Leave();
  return executed;
}

// A reader may give up the right to a verb by an earlier one of the same frame.
bool Connection::AnswerMemory(wire::Frame& frame) {
  const bool guarded = frame.mutates && guard_ != nullptr;
  memory::LineMemory& memory = memory_->Begin();
  const size_t before = out_.size();
  std::byte* next_answer = out_.AddAnswers(frame.answer_bytes);
  for (Verb& verb : std::span(frame.verbs).first(frame.count)) {
    if (guarded && !guard_->May(verb)) {
      DropHostile("a verb to which it gives up the right in the same frame");
      return false;
    }
    if (!ExecuteMemory(memory, verb, next_answer)) [[unlikely]] {
      out_.Uncommit(out_.size() - before);
      SendAwayFromLine(frame.mutates);
      return false;
    }
    if (guarded) guard_->Executed(verb);
  }
  return true;
}

// A goodbye says that nothing happened of what has no answer yet, so a frame that may have changed something
// is answered before.
void Connection::SendAwayFromLine(bool changed) {
  LogClient(fmt::format("is sent away: {}", memory::kStuckLine));
  if (changed) out_.AddLastError(ErrorCode::kOutcomeUnknown, memory::kStuckLine);
  SayGoodbye(ErrorCode::kUnavailable, memory::kStuckLine);
}

void Connection::ExecuteCall(const Verb& verb) {
  const std::string_view request(reinterpret_cast<const char*>(verb.from), verb.size);
  const Result<std::string> reply = server_.node.Call(verb.call, id_, request);
  if (!reply.ok()) return out_.AddError(reply.error().code(), reply.error().message());
  const uint64_t padded = wire::Padded(reply->size());
  const uint64_t body_bytes = sizeof(uint64_t) + padded;
  const size_t total = sizeof(wire::ReplyHeader) + body_bytes;
  if (body_bytes > wire::kMaxBodyBytes ||
      (total > kCallBytes && !buffer_share_.Claim(out_.GrowthForReply(total)))) {
    return out_.AddError(ErrorCode::kOutcomeUnknown,
                         "the reply of the node is too long to be sent; what was called has happened");
  }
  std::byte* const at = wire::Store(uint64_t{reply->size()}, out_.AddAnswers(body_bytes));
  if (padded != 0) std::memset(at + padded - 8, 0, 8);
  std::memcpy(at, reply->data(), reply->size());
}

// ---- frames with fences

void Connection::ContinueParked() {
  state_ = State::kServing;
  if (!gate_.Enter()) {
    gate_.Leave();
    out_.AddLastError(parked_->changed() ? ErrorCode::kOutcomeUnknown : ErrorCode::kFenced,
                      "the client was fenced in the middle of a trip; connect again as a new client");
    parked_.reset();
    return OnCutOff();
  }
  const ParkedFrame::Stop stop = parked_->Execute(memory_->Begin());
  gate_.Leave();  // before a fence is asked for (gate/2)
  switch (stop) {
    case ParkedFrame::Stop::kFence:
      state_ = State::kParked;
      return server_.node.Fence(parked_->victim(), weak_from_this(),
                                [mailbox = mailbox_, self = weak_from_this()] {
                                  if (std::shared_ptr<Connection> waiting = self.lock())
                                    mailbox->Send({LetterKind::kFenceDone, std::move(waiting)});
                                });
    case ParkedFrame::Stop::kStuckLine: return SendAwayFromLine(parked_->changed());
    case ParkedFrame::Stop::kEnd: return FinishParked();
  }
}

void Connection::OnFenceDone() {
  if (state_ != State::kParked) return;
  if (parked_->AtEnd()) {
    FinishParked();  // that was all, so it does not matter whether it was fenced itself
  } else {
    ContinueParked();
  }
  if (cut_off_ && state_ == State::kServing) OnCutOff();
}

void Connection::FinishParked() {
  const std::span<const std::byte> answers = parked_->answers();
  std::byte* const at = out_.AddAnswers(answers.size());
  if (!answers.empty()) std::memcpy(at, answers.data(), answers.size());
  in_.Consume(parked_->total_bytes());
  parked_.reset();
  state_ = State::kServing;
}

// ---- sending -----------------------------------------------------------------------------------------

bool Connection::Flush() {
  while (!out_.empty()) {
    const Transport::Moved moved = transport_.Send(out_.bytes());
    if (moved.outcome == Outcome::kMoved) {
      out_.Consume(moved.bytes);
      progress_.Sent(moved.bytes);
      continue;
    }
    wants_write_ = moved.outcome == Outcome::kWantWrite;
    if (moved.outcome == Outcome::kBroken || moved.outcome == Outcome::kEnd) {
      out_.Clear();
      if (state_ == State::kLeaving) {
        Close();
      } else {
        Lost(transport_.failure());
      }
    }
    return false;
  }
  wants_write_ = false;
  return true;
}

void Connection::CountBuffers() {
  const size_t answers = parked_ == nullptr ? 0 : parked_->answers().size();
  // A parked frame also counts what it will take to send its answers.
  const size_t to_send = parked_ == nullptr ? 0 : out_.GrowthForReply(sizeof(wire::ReplyHeader) + answers);
  buffer_share_.Update({in_.capacity(), out_.capacity(), answers, to_send});
}

// ---- leaving -----------------------------------------------------------------------------------------

void Connection::OnCutOff() {
  cut_off_ = true;
  if (state_ != State::kServing) return;
  LogClient("was fenced");
  SayGoodbye(ErrorCode::kFenced, "the client was fenced");
}

void Connection::OnHangup() {
  // In all other states it is found when the socket is read or written.
  if (state_ == State::kParked) Lost("it disconnected");
}

void Connection::OnStop() {
  if (state_ == State::kServing || state_ == State::kParked) {
    if (parked_ != nullptr && parked_->changed()) {
      out_.AddLastError(ErrorCode::kOutcomeUnknown,
                        "the node stopped in the middle of a trip; read back what was written");
    }
    if (cut_off_ || gate_.closed()) {
      SayGoodbye(ErrorCode::kFenced, "the client was fenced");
    } else {
      SayGoodbye(ErrorCode::kUnavailable, "the node stops");
    }
  }
  Linger();
  Close();
}

void Connection::OnMakeRoom() {
  if (!IsStranger()) return;  // it has come in meanwhile, or is gone
  if (state_ != State::kLeaving) LogRefusal("it did not say Hello, and others need its place");
  Close();
}

bool Connection::IsLate(Nanos now) {
  if (state_ != State::kServing) return IsStranger() && now >= deadline_;
  // With a turn ahead, it is the node that keeps the client waiting.
  if (KeepsWaiting() && !has_turn_ahead) return progress_.HasStalled(now, buffer_share_);
  progress_.Rest();
  return false;
}

void Connection::OnDeadline() {
  if (state_ == State::kServing) {
    LogClient(out_.empty() && !tls_writes_ ? "is closed: it has sent half a request and then nothing"
                                           : "is closed: it takes no answers");
  } else if (state_ != State::kLeaving) {
    LogRefusal("it did not say Hello in time");
  }
  Close();
}

// Nothing of it is executed any more.
bool Connection::Depart() {
  parked_.reset();
  in_.Clear();
  if (id_ == ClientId::kNone) return false;
  if (guard_ != nullptr) {
    memory_->Begin();  // the frame that ends the connection may have waited for too long
    guard_->Depart();
  }
  server_.node.Depart(id_);
  server_.client_limits.Leave(network_);
  id_ = ClientId::kNone;
  return server_.visits.Leave(host_, server_.clock.Now());
}

void Connection::SayGoodbye(ErrorCode code, std::string_view message) {
  out_.AddGoodbye(code, message);
  Depart();
  BeginLeaving();
}

void Connection::BeginLeaving() {
  if (state_ == State::kLeaving || state_ == State::kClosed) return;
  state_ = State::kLeaving;
  deadline_ = server_.clock.Now() + server_.options.greeting_timeout;
  CountBuffers();
  Linger();
}

// Sends what is left to be said, and then waits for the peer to hang up.
void Connection::Linger() {
  if (state_ == State::kLeaving && Flush() && !std::exchange(said_all_, true)) transport_.ShutdownSend();
  if (state_ != State::kLeaving) return;
  const Transport::Moved moved = transport_.Discard();  // once in a turn, as others have theirs
  if (moved.outcome == Outcome::kWantRead) return;
  discarded_ += moved.bytes;
  if (moved.outcome != Outcome::kMoved || discarded_ > (was_client_ ? kMostOfClient : kMostOfStranger))
    Close();
}

void Connection::DropHostile(std::string_view what) {
  LogClient(fmt::format("sent a frame with {}: its connection is closed", what));
  Depart();
  Close();
}

void Connection::Lost(std::string_view why) {
  if (id_ != ClientId::kNone) server_.log.Debug("tcp: client {} at {} left: {}", Number(id_), peer_, why);
  if (Depart()) server_.client_log.Info(server_.clock.Now(), "tcp: {} left: {}", host_, why);
  Close();
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  Depart();
  state_ = State::kClosed;
  transport_.Close();
  in_.Clear();
  out_.Clear();
  CountBuffers();
  server_.open.fetch_sub(1);
}

// ---- its lines in the log ----------------------------------------------------------------------------

void Connection::LogRefusal(std::string_view why) {
  server_.stranger_log.Warn(server_.clock.Now(), "tcp: {} was refused: {}", peer_, why);
}

void Connection::LogClient(std::string_view what) {
  server_.client_log.Warn(server_.clock.Now(), "tcp: client {} at {} {}", Number(id_), peer_, what);
}

}  // namespace farside::fabric::tcp
