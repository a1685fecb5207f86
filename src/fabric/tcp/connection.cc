#include "fabric/tcp/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace farside::fabric::tcp {

using Outcome = Transport::Outcome;

namespace {

std::string_view Clipped(std::string_view message) { return message.substr(0, wire::kMaxMessageBytes); }

}  // namespace

Connection::Connection(Transport transport, std::string peer, ServerState& server,
                       std::shared_ptr<Mailbox> mailbox)
    : server_(server),
      mailbox_(std::move(mailbox)),
      peer_(std::move(peer)),
      transport_(std::move(transport)),
      deadline_(server.clock.Now() + server.options.greeting_timeout) {}

void Connection::CutOff() {
  gate_.Close();
  mailbox_->Send({LetterKind::kCutOff, shared_from_this()});
}

uint32_t Connection::Interest() const {
  const bool full = state_ == State::kServing && out_.size() > kMostUnsent;
  const bool reads = state_ != State::kParked && state_ != State::kClosed && !full;
  return (reads ? uint32_t{EPOLLIN} : 0) | (wants_write_ ? uint32_t{EPOLLOUT} : 0);
}

bool Connection::Advance(wire::Frame& scratch) {
  if (state_ == State::kSecuring) Secure();
  if (state_ == State::kGreeting) Greet();
  if (state_ == State::kServing) {
    const bool again = Serve(scratch);
    Account();
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
        access_ = PeerIsReadOnly(transport_.ssl()) ? wire::Access::kReadOnly : wire::Access::kReadWrite;
      }
      return;
    case Outcome::kWantRead: wants_write_ = false; return;
    case Outcome::kWantWrite: wants_write_ = true; return;
    case Outcome::kEnd:
    case Outcome::kBroken:
      server_.log.Warn("tcp: {} was refused: no TLS with it ({})", peer_, transport_.failure());
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
      server_.log.Warn("tcp: {} was refused: it is no client of Farside", peer_);
      return Close();
    }
  }
  const auto hello = wire::Load<wire::Hello>(in_.bytes().data());
  in_.Consume(sizeof(hello));
  Admit(hello);
}

void Connection::Admit(const wire::Hello& hello) {
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
  if (server_.admitted.fetch_add(1) >= server_.options.max_connections) {
    server_.admitted.fetch_sub(1);
    return Refuse(
        ErrorCode::kUnavailable,
        fmt::format("it serves {} clients already, which is its limit; close some, or raise the limit",
                    server_.options.max_connections));
  }
  const auto id = static_cast<ClientId>(hello.client);
  if (const Status admitted = server_.node.Admit(id, shared_from_this()); !admitted.ok()) {
    server_.admitted.fetch_sub(1);
    return Refuse(admitted.error().code(), admitted.error().message());
  }
  id_ = id;
  state_ = State::kServing;
  const std::string name = transport_.secure() ? PeerName(transport_.ssl()) : "";
  const std::string_view access = access_ == wire::Access::kReadOnly ? ", to read only" : "";
  server_.log.Debug("tcp: client {} came from {}{}{}", Number(id_), peer_,
                    transport_.secure() ? fmt::format(" as '{}'", name) : "", access);
  host_ = peer_.substr(0, peer_.rfind(':'));
  if (transport_.secure()) host_ += fmt::format(", '{}'{}", name, access);
  if (server_.visits.Come(host_, server_.clock.Now())) server_.log.Info("tcp: {} came", host_);
  SendWelcome(0, "");
}

void Connection::SendWelcome(uint8_t status, std::string_view message) {
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
  server_.log.Warn("tcp: {} was refused: {}", peer_, message);
  SendWelcome(wire::StatusOf(code), Clipped(message));
  BeginLeaving();
}

// ---- serving -----------------------------------------------------------------------------------------

bool Connection::Serve(wire::Frame& scratch) {
  bool may_receive = true;
  for (int round = 0; round < kRounds; ++round) {
    size_t unsent = 0;  // verbs
    size_t ahead = 0;
    while (out_.size() <= kMostUnsent) {
      if (ahead == 0) ahead = PrefetchAhead();
      if (!ExecuteNext(scratch)) break;
      ahead -= std::min<size_t>(ahead, scratch.count);
      unsent += scratch.count;
      // In pieces: the client takes the first answers while the next ones are made.
      if (unsent >= kVerbsPerSend) {
        Flush();
        unsent = 0;
      }
    }
    const bool stalled = out_.size() > kMostUnsent;
    if (!out_.empty()) Flush();
    // A client that takes no answers is gone on with when its socket can be written.
    if (state_ != State::kServing || out_.size() > kMostUnsent) return false;
    if (stalled) continue;
    if (!may_receive || !Receive(may_receive)) return false;
  }
  return state_ == State::kServing;
}

bool Connection::Receive(bool& more) {
  if (!Claim(in_.GrowthFor(kReceiveRoom))) {
    server_.log.Warn("tcp: client {} at {} is sent away: {}", Number(id_), peer_, NoMemory());
    SayGoodbye(ErrorCode::kUnavailable, NoMemory());
    return false;
  }
  std::byte* const to = in_.Reserve(kReceiveRoom);
  const size_t room = in_.room();
  const Transport::Moved moved = transport_.Receive({to, room});
  switch (moved.outcome) {
    case Outcome::kMoved:
      in_.Commit(moved.bytes);
      received_ += moved.bytes;
      more = moved.bytes == room || transport_.secure();
      return true;
    case Outcome::kWantRead:
    case Outcome::kWantWrite: return false;
    case Outcome::kEnd: Lost("it disconnected"); return false;
    case Outcome::kBroken: Lost(transport_.failure()); return false;
  }
  return false;
}

// What the next frames touch is asked for before the first of them is executed, so that they do not wait for
// memory one after the other.
size_t Connection::PrefetchAhead() {
  std::span<const std::byte> bytes = in_.bytes();
  size_t verbs = 0;
  while (verbs < kVerbsAhead && bytes.size() > sizeof(wire::FrameHeader)) {
    const auto header = wire::Load<wire::FrameHeader>(bytes.data());
    bytes = bytes.subspan(sizeof(header));
    if (header.body_bytes > bytes.size()) break;
    const bool alone = verbs == 0 && header.verbs <= 1 && header.body_bytes == bytes.size();
    verbs += header.verbs;
    if (alone) break;
    wire::GuessWhatIsTouched(bytes.first(header.body_bytes), server_.node.region_bytes(),
                             [this](uint64_t offset, uint64_t size, bool mutates) {
                               server_.node.memory().Prefetch(offset, size, mutates);
                             });
    bytes = bytes.subspan(header.body_bytes);
  }
  return verbs;
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
  if (access_ == wire::Access::kReadOnly &&
      std::any_of(verbs.begin(), verbs.end(), [this](const Verb& verb) { return IsForbidden(verb); })) {
    QueueMessage(
        wire::ReplyKind::kError, ErrorCode::kPermissionDenied,
        "this client may only read; to write, connect with a certificate that is not for reading only");
  } else if (!Claim(out_.GrowthFor(sizeof(wire::ReplyHeader) + scratch.answer_bytes) +
                    (scratch.has_control ? scratch.answer_bytes : 0))) {
    QueueMessage(wire::ReplyKind::kError, ErrorCode::kContended, NoMemory());
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

bool Connection::IsForbidden(const Verb& verb) const {
  if (verb.kind == VerbKind::kRead) return false;
  return !server_.options.write_guard || !server_.options.write_guard(id_, verb);
}

// False: it is cut off, or goes on later.
bool Connection::Execute(wire::Frame& frame) {
  if (frame.has_control && frame.verbs[0].kind != VerbKind::kCall) {
    parked_ = std::make_unique<Parked>();
    parked_->frame = frame;
    parked_->total_bytes = 0;
    for (size_t i = 0; i < frame.count; ++i) parked_->total_bytes += wire::EncodedBytes(frame.verbs[i]);
    parked_->total_bytes += sizeof(wire::FrameHeader);
    parked_->answers.resize(frame.answer_bytes);
    parked_->next_answer = parked_->answers.data();
    ContinueParked();
    return false;
  }
  if (!frame.mutates) {
    // READs take no effect, so no fence has to wait for them: looking at the gate is enough.
    if (gate_.closed()) {
      OnCutOff();
      return false;
    }
    std::byte* next_answer = QueueAnswers(frame.answer_bytes);
    for (size_t i = 0; i < frame.count; ++i) ExecuteMemory(frame.verbs[i], next_answer);
    return true;
  }
  if (!gate_.Enter()) {
    gate_.Leave();
    OnCutOff();
    return false;
  }
  if (frame.has_control) {
    ExecuteCall(frame.verbs[0]);
  } else {
    std::byte* next_answer = QueueAnswers(frame.answer_bytes);
    for (size_t i = 0; i < frame.count; ++i) ExecuteMemory(frame.verbs[i], next_answer);
  }
  gate_.Leave();
  return true;
}

void Connection::ExecuteMemory(Verb& verb, std::byte*& next_answer) {
  if (verb.kind == VerbKind::kRead) {
    const uint64_t padded = wire::Padded(verb.size);
    if (padded != verb.size) std::memset(next_answer + padded - 8, 0, 8);
    server_.node.memory().Read(verb.at.offset, {next_answer, verb.size});
    next_answer += padded;
    return;
  }
  server_.node.memory().Execute(verb);
  if (IsAtomic(verb.kind)) next_answer = wire::Store(verb.old, next_answer);
}

void Connection::ExecuteCall(const Verb& verb) {
  const std::string_view request(reinterpret_cast<const char*>(verb.from), verb.size);
  const Result<std::string> reply = server_.node.Call(verb.call, id_, request);
  if (!reply.ok())
    return QueueMessage(wire::ReplyKind::kError, reply.error().code(), reply.error().message());
  const uint64_t padded = wire::Padded(reply->size());
  if (padded + sizeof(uint64_t) > wire::kMaxBodyBytes) {
    return QueueMessage(wire::ReplyKind::kError, ErrorCode::kOutcomeUnknown,
                        "the reply of the node is too long to be sent; what was called has happened");
  }
  std::byte* const at = wire::Store(uint64_t{reply->size()}, QueueAnswers(sizeof(uint64_t) + padded));
  if (padded != 0) std::memset(at + padded - 8, 0, 8);
  std::memcpy(at, reply->data(), reply->size());
}

// ---- frames with fences

void Connection::ContinueParked() {
  Parked& parked = *parked_;
  state_ = State::kServing;
  if (!gate_.Enter()) {
    gate_.Leave();
    QueueMessage(wire::ReplyKind::kError, parked.changed ? ErrorCode::kOutcomeUnknown : ErrorCode::kFenced,
                 "the client was fenced in the middle of a trip; connect again as a new client");
    parked_.reset();
    return OnCutOff();
  }
  while (parked.next < parked.frame.count) {
    Verb& verb = parked.frame.verbs[parked.next++];
    if (verb.kind == VerbKind::kFence) {
      gate_.Leave();  // gate/2
      state_ = State::kParked;
      server_.node.Fence(static_cast<ClientId>(verb.desired),
                         [mailbox = mailbox_, self = shared_from_this()] {
                           mailbox->Send({LetterKind::kFenceDone, self});
                         });
      return;
    }
    ExecuteMemory(verb, parked.next_answer);
    parked.changed |= Mutates(verb.kind);
  }
  gate_.Leave();
  FinishParked();
}

void Connection::OnFenceDone() {
  if (state_ != State::kParked) return;
  if (parked_->next < parked_->frame.count) {
    ContinueParked();
  } else {
    FinishParked();  // that was all, so it does not matter whether it was fenced itself
  }
  if (cut_off_ && state_ == State::kServing) OnCutOff();
}

void Connection::FinishParked() {
  const std::vector<std::byte>& answers = parked_->answers;
  std::byte* const at = QueueAnswers(answers.size());
  if (!answers.empty()) std::memcpy(at, answers.data(), answers.size());
  in_.Consume(parked_->total_bytes);
  parked_.reset();
  state_ = State::kServing;
}

// ---- sending -----------------------------------------------------------------------------------------

std::byte* Connection::QueueAnswers(uint64_t body_bytes) {
  wire::ReplyHeader header;
  header.body_bytes = static_cast<uint32_t>(body_bytes);
  std::byte* const at = out_.Reserve(sizeof(header) + body_bytes);
  out_.Commit(sizeof(header) + body_bytes);
  return wire::Store(header, at);
}

void Connection::QueueMessage(wire::ReplyKind kind, ErrorCode code, std::string_view message) {
  message = Clipped(message);
  wire::ReplyHeader header;
  header.body_bytes = static_cast<uint32_t>(message.size());
  header.kind = kind;
  header.status = wire::StatusOf(code);
  out_.Append(std::as_bytes(std::span(&header, 1)));
  out_.Append(std::as_bytes(std::span(message)));
}

bool Connection::Flush() {
  while (!out_.empty()) {
    const Transport::Moved moved = transport_.Send(out_.bytes());
    if (moved.outcome == Outcome::kMoved) {
      out_.Consume(moved.bytes);
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

// ---- memory ------------------------------------------------------------------------------------------

bool Connection::Claim(size_t growth) {
  if (growth <= ByteQueue::kKept) return true;
  // Added only if it fits: connections that claim little at the same time must not be refused because of this
  // one.
  auto held = server_.buffered.load();
  do {
    if (growth > server_.options.max_buffered || held > server_.options.max_buffered - growth) return false;
  } while (!server_.buffered.compare_exchange_weak(held, held + growth));
  claimed_ += growth;
  return true;
}

void Connection::Account() {
  const auto large = [](size_t bytes) { return bytes > ByteQueue::kKept ? bytes : 0; };
  const size_t held = large(in_.capacity()) + large(out_.capacity()) +
                      (parked_ == nullptr ? 0 : large(parked_->answers.capacity()));
  if (held == claimed_) return;
  server_.buffered.fetch_add(held - claimed_);  // modulo 2^64, if it holds less
  claimed_ = held;
}

std::string Connection::NoMemory() const {
  return fmt::format(
      "the node has {} MiB for large requests and answers of all its clients, and they are in use; try again "
      "later, or with less at once",
      server_.options.max_buffered >> 20);
}

// ---- leaving -----------------------------------------------------------------------------------------

void Connection::OnCutOff() {
  cut_off_ = true;
  if (state_ != State::kServing) return;
  server_.log.Warn("tcp: client {} at {} was fenced", Number(id_), peer_);
  SayGoodbye(ErrorCode::kFenced, "the client was fenced");
}

void Connection::OnHangup() {
  // In all other states it is found when the socket is read or written.
  if (state_ == State::kParked) Lost("it disconnected");
}

void Connection::OnStop() {
  if (state_ == State::kServing || state_ == State::kParked) {
    if (parked_ != nullptr && parked_->changed) {
      QueueMessage(wire::ReplyKind::kError, ErrorCode::kOutcomeUnknown,
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

void Connection::OnDeadline() {
  if (state_ != State::kLeaving) server_.log.Warn("tcp: {} was refused: it did not say Hello in time", peer_);
  Close();
}

// Nothing of it is executed any more.
bool Connection::Depart() {
  parked_.reset();
  in_.Clear();
  if (id_ == ClientId::kNone) return false;
  server_.node.Depart(id_);
  server_.admitted.fetch_sub(1);
  id_ = ClientId::kNone;
  return server_.visits.Leave(host_, server_.clock.Now());
}

void Connection::SayGoodbye(ErrorCode code, std::string_view message) {
  QueueMessage(wire::ReplyKind::kGoodbye, code, message);
  Depart();
  BeginLeaving();
}

void Connection::BeginLeaving() {
  if (state_ == State::kLeaving || state_ == State::kClosed) return;
  state_ = State::kLeaving;
  deadline_ = server_.clock.Now() + server_.options.greeting_timeout;
  Linger();
}

// Sends what is left to be said, and then waits for the peer to hang up.
void Connection::Linger() {
  if (state_ == State::kLeaving && Flush() && !std::exchange(said_all_, true)) transport_.ShutdownSend();
  while (state_ == State::kLeaving) {
    std::byte* const to = in_.Reserve(kReceiveRoom);
    const Transport::Moved moved = transport_.Receive({to, in_.room()});
    if (moved.outcome == Outcome::kWantRead || moved.outcome == Outcome::kWantWrite) return;
    if (moved.outcome != Outcome::kMoved) return Close();
  }
}

void Connection::DropHostile(std::string_view what) {
  server_.log.Warn("tcp: client {} at {} sent a frame with {}: its connection is closed", Number(id_), peer_,
                   what);
  Depart();
  Close();
}

void Connection::Lost(std::string_view why) {
  if (id_ != ClientId::kNone) server_.log.Debug("tcp: client {} at {} left: {}", Number(id_), peer_, why);
  if (Depart()) server_.log.Info("tcp: {} left: {}", host_, why);
  Close();
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  Depart();
  state_ = State::kClosed;
  transport_.Close();
  in_.Clear();
  out_.Clear();
  Account();
  server_.open.fetch_sub(1);
}

}  // namespace farside::fabric::tcp
