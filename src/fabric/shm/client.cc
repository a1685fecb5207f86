#include "fabric/shm/client.h"

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "fabric/shm/socket.h"

namespace farside::fabric::shm {
namespace {

// How many trips, or turns of Poll without any, a client does between two looks at its daemons.
constexpr uint32_t kTripsPerLook = 4096;
constexpr uint32_t kIdlePollsPerLook = 64;

std::vector<std::string> NamesOf(std::span<const std::unique_ptr<Link>> links) {
  std::vector<std::string> names;
  for (const std::unique_ptr<Link>& link : links) names.push_back(link->node());
  return names;
}

}  // namespace

Link::Link(std::string node, Descriptor socket, std::shared_ptr<Mapping> mapping, uint32_t slot)
    : node_(std::move(node)),
      socket_(std::move(socket)),
      mapping_(std::move(mapping)),
      slot_(slot),
      memory_(mapping_->region(), mapping_->control().stripes, HolderOf(slot),
              mapping_->control().slots[slot].staging, *this) {}

// A child may still have the socket, if it was made by a raw system call, so that closing it would end
// nothing; and a child must not end what is its parent's.
Link::~Link() {
  if (!mapping_->forked()) ::shutdown(socket_.get(), SHUT_RDWR);
}

std::optional<WireStatus> Link::Ask(const Request& request, std::span<const std::byte> body,
                                    std::string& payload) {
  if (!Send(socket_.get(), BytesOf(request), body, Wait::kYes)) return std::nullopt;
  std::vector<std::byte> buffer(sizeof(Reply) + kMaxPayload);
  const Received received = Receive(socket_.get(), buffer, Wait::kYes);
  if (received.kind != Received::Kind::kMessage || received.bytes < sizeof(Reply)) return std::nullopt;
  Reply reply;
  std::memcpy(&reply, buffer.data(), sizeof reply);
  if (reply.payload_bytes != received.bytes - sizeof reply) return std::nullopt;
  payload = AsText(std::span(buffer).subspan(sizeof reply, reply.payload_bytes));
  return reply.status;
}

bool Link::IsGone() const {
  return mapping_->control().header.left.load(std::memory_order_acquire) != 0 || IsCut(lifeline()) ||
         !IsQuiet(socket_.get());
}

ShmClient::ShmClient(ClientId id, std::span<const uint64_t> region_bytes, const Clock& clock,
                     std::vector<std::unique_ptr<Link>> links)
    : DirectClient(id, region_bytes, clock),
      links_(std::move(links)),
      nodes_(NamesOf(links_)),
      until_look_(kTripsPerLook) {
  std::vector<Reach> reach;
  for (const std::unique_ptr<Link>& link : links_) {
    reach.push_back({&link->memory(), &link->gate()});
    lifelines_.push_back(&link->lifeline());
  }
  SetReach(std::move(reach));
}

bool ShmClient::Start(Trip& trip) {
  if (forked() || AnyIsCut() || --until_look_ == 0) [[unlikely]]
    LookAround();
  return DirectClient::Start(trip);
}

void ShmClient::Detach(Order order, std::span<const Verb> verbs) {
  if (forked() || --until_look_ == 0) [[unlikely]]
    LookAround();
  DirectClient::Detach(order, verbs);
}

bool ShmClient::Poll() {
  if (!has_trips()) {
    constexpr uint32_t kStep = kTripsPerLook / kIdlePollsPerLook;
    until_look_ -= until_look_ > kStep ? kStep : until_look_ - 1;
    if (forked() || until_look_ == 1) LookAround();
  } else if (forked()) {
    LookAround();
  }
  return DirectClient::Poll();
}

// Between two trips.
void ShmClient::LookAround() {
  until_look_ = kTripsPerLook;
  if (forked()) {
    Break(ForkGuard::Refusal());
  } else if (!broken()) {
    LookAtNodes();
  }
  // Unmaps the memory: a daemon that is started again can have a file only when no process maps it any more.
  if (!broken()) return;
  lifelines_.clear();
  links_.clear();
}

void ShmClient::LookAtNodes() {
  for (size_t node = 0; node < links_.size(); ++node) {
    if (links_[node]->IsGone()) return Break(Gone(static_cast<NodeId>(node)));
  }
}

std::optional<Error> ShmClient::Call(Verb& verb) {
  if (verb.size > kMaxPayload) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a Call of {} bytes; it carries at most {}", verb.size, kMaxPayload));
  }
  const Request request{.kind = RequestKind::kCall,
                        .payload_bytes = static_cast<uint32_t>(verb.size),
                        .engine = verb.call.engine,
                        .operation = verb.call.operation,
                        .victim = 0};
  std::string payload;
  const std::optional<WireStatus> status = LinkOf(verb.at.node).Ask(request, {verb.from, verb.size}, payload);
  if (!status.has_value()) {
    BreakAndLetGo(Gone(verb.at.node));
    return LostCompletion(std::span(&verb, 1), Gone(verb.at.node).message());
  }
  if (*status != kWireOk) return Error(FromWire(*status), EscapeAtMost(payload, kMaxText));
  *verb.reply = std::move(payload);
  return std::nullopt;
}

std::optional<Error> ShmClient::Fence(const Verb& verb) {
  const Request request{.kind = RequestKind::kFence,
                        .payload_bytes = 0,
                        .engine = 0,
                        .operation = 0,
                        .victim = static_cast<uint32_t>(verb.desired)};
  std::string payload;
  const std::optional<WireStatus> status = LinkOf(verb.at.node).Ask(request, {}, payload);
  if (status == kWireOk) return std::nullopt;
  if (status.has_value()) return Error(FromWire(*status), EscapeAtMost(payload, kMaxText));
  BreakAndLetGo(Gone(verb.at.node));
  return Gone(verb.at.node);
}

Error ShmClient::Closed(NodeId node) {
  Error error = LinkOf(node).IsGone() ? Gone(node) : Fenced();
  BreakAndLetGo(error);
  return error;
}

Error ShmClient::Stuck(NodeId node) {
  BreakAndLetGo(Gone(node));
  return Gone(node);
}

// In the middle of a trip, which still needs its gates: they are let go before the next one.
void ShmClient::BreakAndLetGo(Error error) {
  Break(std::move(error));
  until_look_ = 1;
}

Error ShmClient::Gone(NodeId node) const {
  return Error(
      ErrorCode::kUnavailable,
      fmt::format("memory node {} is gone: its daemon has ended; start it again, and open the pool again",
                  Escape(nodes_[Index(node)])));
}

}  // namespace farside::fabric::shm
