#include "fabric/shm/server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "fabric/shm/lifeline.h"
#include "fabric/shm/socket.h"

namespace farside::fabric::shm {
namespace {

// What epoll tells: a connection has two events, one for its socket and one for the process at its other end.
constexpr uint64_t kStopEvent = 0;
constexpr uint64_t kListenerEvent = 1;
constexpr uint64_t kFirstConnection = 1;
constexpr uint64_t SocketEvent(uint64_t connection) { return connection * 2; }
constexpr uint64_t ProcessEvent(uint64_t connection) { return connection * 2 + 1; }

// Connections that have not introduced themselves. More of them push out the oldest.
constexpr size_t kMaxStrangers = 128;
// Connections that are accepted at once, until those that are there have their turn. Else processes that
// connect and hang up without end would keep the thread from all else, and push out strangers unheard.
constexpr int kAcceptMost = 16;
// How often leaving clients are looked at, while some of them are not still yet.
constexpr int kLeavingLookMs = 5;
// How often lines are looked for that no client holds.
constexpr int kStraysLookMs = 1000;
constexpr Nanos kStraysLook = std::chrono::milliseconds(kStraysLookMs);
// How long a client that was fenced may stay inside its trip before something is done or said about it.
constexpr Nanos kFencePatience = std::chrono::milliseconds(100);
// How long a server that stops waits for clients in the middle of a trip.
constexpr int kStopLooks = 100;
constexpr auto kStopLook = std::chrono::milliseconds(1);

std::shared_ptr<LimitedLog> NewLog(const ServerOptions& options, const char* subject) {
  return options.log == nullptr ? nullptr : std::make_shared<LimitedLog>(*options.log, subject);
}

ShmServedClient::Terms TermsOf(const ServerOptions& options) {
  std::shared_ptr<const Clock> clock;
  if (options.clock != nullptr) {
    clock = std::shared_ptr<const Clock>(std::shared_ptr<void>(), options.clock);  // not ours
  } else {
    clock = std::make_shared<SteadyClock>();
  }
  return {.fence = options.fence,
          .patience = kFencePatience,
          .clock = std::move(clock),
          .log = NewLog(options, "shm: of clients")};
}

// No client sends descriptors, and a listener refuses them where the kernel can. Else they are closed with
// the message, and to close a socket may wait for its peer.
void DoNotLinger(const Descriptor& sent) {
  const linger off{};
  static_cast<void>(::setsockopt(sent.get(), SOL_SOCKET, SO_LINGER, &off, sizeof off));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(memory::ServedNode& node, SharedMemory& memory,
                                              const ServerOptions& options) {
  assert(node.region_bytes() == memory.region().size() && node.region_id() == memory.region_id());
  if (options.max_clients == 0 || options.max_clients > kClientSlots) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} clients at most; 1 to {} are possible", options.max_clients, kClientSlots));
  }
  if (options.fence == FencePolicy::kKill &&
      !Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))).open()) {
    return Error(
        ErrorCode::kUnsupported,
        "this kernel has no pidfd, so a process cannot be killed for certain; let fences wait instead");
  }
  Result<std::string> path = PathToServe(options.node);
  if (!path.ok()) return path.error();
  Result<Listener> listener = Listener::Open(*path, options.group);
  if (!listener.ok()) return listener.error();
  std::unique_ptr<Server> server(new Server(node, memory, options, std::move(*listener)));
  if (!server->epoll_.open() || !server->stop_.open()) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot wait for clients: {}", std::generic_category().message(errno)));
  }
  server->Watch(server->stop_.get(), kStopEvent);
  server->Watch(server->listener_.descriptor(), kListenerEvent);
  server->control_ = std::thread([self = server.get()] { self->Run(); });
  return server;
}

Server::Server(memory::ServedNode& node, SharedMemory& memory, const ServerOptions& options,
               Listener listener)
    : node_(node),
      memory_(memory),
      max_clients_(options.max_clients),
      terms_(TermsOf(options)),
      stranger_log_(NewLog(options, "shm: of strangers")),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      last_connection_(kFirstConnection),
      calls_(node) {
  holders_.resize(kClientSlots + 1);
  slots_.reserve(max_clients_);
  for (uint32_t slot = max_clients_; slot > 0; --slot) slots_.push_back(slot - 1);
}

Server::~Server() {
  if (control_.joinable()) {
    constexpr uint64_t kOne = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &kOne, sizeof kOne);
    control_.join();
  }
  // In this order: a client that finds its gate closed asks why.
  memory_.control().header.left.store(1, std::memory_order_seq_cst);
  for (auto& [number, connection] : connections_) {
    if (connection.client != nullptr) connection.client->Leave();
    ::shutdown(connection.channel->descriptor(), SHUT_RDWR);
  }
  for (auto& [number, connection] : connections_) {
    if (connection.client != nullptr && !std::exchange(connection.leaving, true)) ++leaving_;
  }
  for (int look = 0; look < kStopLooks && !FinishLeaving(); ++look) std::this_thread::sleep_for(kStopLook);
  while (!connections_.empty()) End(connections_.begin());
  for (LimitedLog* log : {stranger_log_.get(), terms_.log.get()}) {
    if (log != nullptr) log->ReportTheRest(terms_.clock->Now());
  }
}

// ---- events -----------------------------------------------------------------------------------------

void Server::Watch(int descriptor, uint64_t event) const {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = event;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &wanted);
}

void Server::Unwatch(int descriptor) const { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

void Server::Run() {
  // This thread lives as long as the daemon serves, and welcomes every client.
  const Lifeline lifeline(memory_.control().header.lifeline);
  std::array<epoll_event, 64> events;
  while (true) {
    const int timeout = FinishLeaving() ? kStraysLookMs : kLeavingLookMs;
    FreeStrays();
    ReportLeftOut();
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    for (int i = 0; i < count; ++i) {
      if (events[static_cast<size_t>(i)].data.u64 == kStopEvent) return;
      Handle(events[static_cast<size_t>(i)].data.u64);
    }
  }
}

// An event of a connection that an earlier event of the same round has ended finds nothing.
void Server::Handle(uint64_t event) {
  if (event == kListenerEvent) return AcceptSome();
  const uint64_t number = event / 2;
  if (!connections_.contains(number)) return;
  if (event == ProcessEvent(number)) return Leave(number);
  HandleMessage(number);
}

// ---- connections ------------------------------------------------------------------------------------

void Server::AcceptSome() {
  for (int i = 0; i < kAcceptMost; ++i) {
    Descriptor socket = listener_.Accept();
    if (socket.open()) {
      Accept(std::move(socket));
      continue;
    }
    if (errno != EMFILE && errno != ENFILE) return;
    // Clients wait in the queue of the socket until another client leaves.
    if (stranger_log_ != nullptr) {
      stranger_log_->Error(
          terms_.clock->Now(),
          "no descriptor is left for another client; raise the limit of open files (ulimit -n)");
    }
    Unwatch(listener_.descriptor());
    out_of_descriptors_ = true;
    return;
  }
}

// A refused client stays connected until it disconnects: if it had not yet read the refusal, closing would
// take it away.
void Server::Accept(Descriptor socket) {
  const std::optional<Peer> peer = Listener::PeerOf(socket);
  if (!peer.has_value()) return;
  const auto channel = std::make_shared<Channel>(std::move(socket));
  const bool admitted = listener_.Admits(channel->socket(), *peer);
  if (!admitted) {
    if (stranger_log_ != nullptr) {
      stranger_log_->Warn(terms_.clock->Now(),
                          "user {} (pid {}) was refused: it is neither the owner nor of the group", peer->uid,
                          peer->pid);
    }
    Refuse(*channel, Error(ErrorCode::kPermissionDenied, "you may not use this memory; ask its owner"));
  }
  if (strangers_ == kMaxStrangers) DropOldestStranger();
  const uint64_t number = ++last_connection_;
  connections_.emplace(number, Connection{.channel = channel, .peer = *peer, .cut_off = !admitted});
  ++strangers_;
  Watch(channel->descriptor(), SocketEvent(number));
}

void Server::DropOldestStranger() {
  const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                   [](const auto& entry) { return entry.second.client == nullptr; });
  if (oldest != connections_.end()) End(oldest);
}

void Server::HandleMessage(uint64_t number) {
  Connection& connection = connections_.find(number)->second;
  std::array<std::byte, kMaxMessage> buffer;
  const Received received = Receive(connection.channel->descriptor(), buffer, Wait::kNo);
  const std::span<const std::byte> message = std::span(buffer).first(received.bytes);
  for (const Descriptor& sent : received.descriptors) DoNotLinger(sent);
  if (received.kind == Received::Kind::kNothing) return;
  if (received.kind == Received::Kind::kEnd) return Leave(number);
  if (connection.cut_off) return;
  if (connection.client == nullptr) return HandleHello(number, message);
  if (received.kind == Received::Kind::kBroken) return CutOff(connection, "sent a message that is too long");
  HandleRequest(connection, message);
}

void Server::HandleHello(uint64_t number, std::span<const std::byte> message) {
  Connection& connection = connections_.find(number)->second;
  Channel& channel = *connection.channel;
  Hello hello{};
  if (message.size() != sizeof hello) return End(connections_.find(number));
  std::memcpy(&hello, message.data(), sizeof hello);
  if (hello.magic != kMagic) return End(connections_.find(number));
  if (hello.version != kVersion) {
    return Refuse(channel, Error(ErrorCode::kVersionMismatch,
                                 fmt::format("it speaks version {}, and you version {}; use the same release",
                                             kVersion, hello.version)));
  }
  if (hello.client == 0) return Welcome(connection, 0);
  if (slots_.empty()) {
    return Refuse(channel,
                  Error(ErrorCode::kUnavailable,
                        fmt::format("it has {} clients and no slot for another; wait until one has left",
                                    max_clients_)));
  }
  const uint32_t slot_number = slots_.back();
  ClientSlot& slot = memory_.control().slots[slot_number];
  std::construct_at(&slot.gate);
  // What is held in its name is held by no client; there is nothing to complete.
  slot.staging.sequence.store(memory::Staging::kNothing, std::memory_order_release);
  node_.memory().Recover(HolderOf(slot_number), slot.staging);
  auto client = std::make_shared<ShmServedClient>(
      node_, slot, slot_number, static_cast<ClientId>(hello.client), connection.peer.pid,
      Listener::ProcessOf(channel.socket(), connection.peer), terms_);
  if (Status admitted = node_.Admit(client->id(), client); !admitted.ok()) {
    return Refuse(channel, admitted.error());
  }
  slots_.pop_back();
  holders_[HolderOf(slot_number)] = true;
  connection.client = client;
  --strangers_;
  ++clients_;
  if (client->process() >= 0) Watch(client->process(), ProcessEvent(number));
  Welcome(connection, slot_number);
}

void Server::Welcome(const Connection& connection, uint32_t slot) {
  const shm::Welcome welcome{.magic = kMagic,
                             .version = kVersion,
                             .status = kWireOk,
                             .region_bytes = memory_.region().size(),
                             .control_bytes = kControlBytes,
                             .region_id = memory_.region_id(),
                             .instance = memory_.control().header.instance,
                             .slot = slot,
                             .text_bytes = 0};
  const std::array<int, 2> descriptors = {memory_.control_descriptor(), memory_.region_descriptor()};
  static_cast<void>(Send(connection.channel->descriptor(), BytesOf(welcome), {}, Wait::kNo, descriptors));
}

void Server::Refuse(const Channel& channel, const Error& why) {
  const std::string_view text = std::string_view(why.message()).substr(0, kMaxText);
  shm::Welcome refusal{};
  refusal.magic = kMagic;
  refusal.version = kVersion;
  refusal.status = ToWire(why.code());
  refusal.text_bytes = static_cast<uint32_t>(text.size());
  static_cast<void>(Send(channel.descriptor(), BytesOf(refusal), std::as_bytes(std::span(text)), Wait::kNo));
}

void Server::HandleRequest(Connection& connection, std::span<const std::byte> message) {
  Request request{};
  if (message.size() < sizeof request) return CutOff(connection, "sent a message that is too short");
  std::memcpy(&request, message.data(), sizeof request);
  const std::span<const std::byte> payload = message.subspan(sizeof request);
  if (request.payload_bytes != payload.size())
    return CutOff(connection, "sent a message of the wrong length");
  if (!connection.channel->BeginRequest()) return CutOff(connection, "did not wait for a reply");
  switch (request.kind) {
    case RequestKind::kCall:
      return calls_.Post({connection.client, connection.channel, CallId(request.engine, request.operation),
                          std::string(AsText(payload))});
    case RequestKind::kFence:
      // A client that has left meanwhile takes its socket with it.
      return node_.Fence(static_cast<ClientId>(request.victim), connection.channel,
                         [channel = std::weak_ptr(connection.channel)] {
                           if (const std::shared_ptr<Channel> open = channel.lock()) open->Reply(kWireOk, "");
                         });
  }
  CutOff(connection, "sent a request that does not exist");
}

// Only this side of the connection is closed: a client that is served no more still has its slot, and may
// still look at its gate, until it closes the other side. The line comes first: what the client finds closed
// is in the log.
void Server::CutOff(Connection& connection, std::string_view why) {
  if (terms_.log != nullptr) {
    terms_.log->Warn(terms_.clock->Now(), "client {} (pid {}) {}: cut off", Number(connection.client->id()),
                     connection.peer.pid, why);
  }
  connection.cut_off = true;
  connection.client->CutOff();
  ::shutdown(connection.channel->descriptor(), SHUT_WR);
}

// ---- the end ----------------------------------------------------------------------------------------

void Server::Leave(uint64_t number) {
  const auto at = connections_.find(number);
  Connection& connection = at->second;
  if (connection.client == nullptr) return End(at);
  if (connection.leaving) return;
  Unwatch(connection.channel->descriptor());
  if (connection.client->process() >= 0) Unwatch(connection.client->process());
  connection.client->Leave();
  connection.leaving = true;
  ++leaving_;
}

bool Server::FinishLeaving() {
  if (leaving_ == 0) return true;
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto next = std::next(at);
    if (at->second.leaving && at->second.client->TryRecover()) End(at);
    at = next;
  }
  return leaving_ == 0;
}

void Server::End(Connections::iterator at) {
  Connection& connection = at->second;
  if (connection.client != nullptr) {
    node_.Depart(connection.client->id());
    slots_.push_back(connection.client->slot());
    holders_[HolderOf(connection.client->slot())] = false;
    --clients_;
    leaving_ -= connection.leaving ? 1 : 0;
  } else {
    --strangers_;
  }
  connections_.erase(at);
  if (!out_of_descriptors_) return;
  out_of_descriptors_ = false;
  Watch(listener_.descriptor(), kListenerEvent);
}

// No client holds a line of its own accord without a slot, or in the node's name, so this finds something
// only where a process wrote to the control memory what it should not have.
void Server::FreeStrays() {
  const Nanos now = terms_.clock->Now();
  if (now - freed_strays_ < kStraysLook) return;
  freed_strays_ = now;
  const size_t strays = node_.FreeStrays(holders_);
  if (strays == 0 || terms_.log == nullptr) return;
  terms_.log->Warn(
      now,
      "{} lines were held by no client, and are free again: a process has written to the memory that clients "
      "share what it should not have",
      strays);
}

void Server::ReportLeftOut() {
  for (LimitedLog* log : {stranger_log_.get(), terms_.log.get()}) {
    if (log != nullptr && log->HasLeftOut()) log->ReportLeftOut(terms_.clock->Now());
  }
}

}  // namespace farside::fabric::shm
