#include "fabric/tcp/client.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/pause.h"

namespace farside::fabric::tcp {
namespace {

using Outcome = Transport::Outcome;

// How often to look for an answer before sleeping: while the answers come soon, long enough for one to come;
// else hardly.
constexpr uint32_t kMostSpins = 256;
constexpr uint32_t kFewestSpins = 4;
// How many waits there are between two that look long, to find out whether that pays by now.
constexpr uint32_t kWaitsPerTrial = 32;
// How often busy polling looks at the clock for nodes that are silent.
constexpr uint32_t kPollsPerLook = 1024;
// The longest sleep, so that clocks other than the machine's are looked at too.
constexpr Nanos kLongestSleep = std::chrono::milliseconds(100);
constexpr Nanos kLongestSleepWithTimers = std::chrono::milliseconds(5);
// While a node is silent, the others are asked whether they are there, so often within the time that a node
// may be silent.
constexpr int kProbesPerTimeout = 4;
// For how many such times a client waits before it has no patience any more.
constexpr int kTimeoutsInARow = 2;
constexpr std::string_view kNonsense = "the node answered something else than was asked";

bool PartMutates(std::span<const Verb> verbs, uint16_t node) {
  return std::any_of(verbs.begin(), verbs.end(),
                     [node](const Verb& verb) { return Index(verb.at.node) == node && Mutates(verb.kind); });
}

}  // namespace

TcpClient::TcpClient(ClientId id, const Surroundings& surroundings, std::vector<Link> links)
    : Client(id, Distance::kFar),
      surroundings_(surroundings),
      links_(std::move(links)),
      parts_(links_.size()),
      waited_(surroundings.waited),
      waited_until_(surroundings.clock->Now()),
      spins_(kMostSpins) {}

TcpClient::~TcpClient() {
  assert(awaited_ == 0 && timers_.empty() && "tasks that wait for a client must not outlive it");
}

// ---- posting -----------------------------------------------------------------------------------------

bool TcpClient::Start(Trip& trip) {
  if (broken_.has_value()) {
    trip.Fail(*broken_);
    return true;
  }
  if (std::optional<Error> error = Plan(trip.verbs)) {
    trip.Fail(std::move(*error));
    return true;
  }
  Post(trip.verbs, &trip);
  if (!polling_ && concurrency() <= 1) FlushAll();
  return false;
}

void TcpClient::Detach(Order, std::span<const Verb> verbs) {
  if (broken_.has_value() || Plan(verbs)) return;  // like every error of verbs that no coroutine awaits
  Post(verbs, nullptr);
  if (!polling_ && !WillBePolled()) FlushAll();
}

void TcpClient::Abandon(Trip& trip) noexcept {
  UnansweredTrip& unanswered = unanswered_[reinterpret_cast<uintptr_t>(trip.backend_data)];
  assert(unanswered.trip == &trip);
  // What it may have changed is not looked up in its verbs any more.
  unanswered.trip = nullptr;
  --awaited_;
  ++unawaited_;
  if (!polling_ && !WillBePolled()) FlushAll();
}

bool TcpClient::HasUnawaitedOfFirst(uint64_t posted) const {
  return unawaited_ != 0 &&
         std::any_of(unanswered_.begin(), unanswered_.end(), [posted](const UnansweredTrip& unanswered) {
           return unanswered.frames != 0 && unanswered.trip == nullptr && unanswered.number <= posted;
         });
}

// Checks the verbs, and adds up what goes to each node.
std::optional<Error> TcpClient::Plan(std::span<const Verb> verbs) {
  // First of all: of a node that was never reached not even the size is known.
  for (const Verb& verb : verbs) {
    const size_t node = Index(verb.at.node);
    if (node < links_.size() && links_[node].down().has_value()) return links_[node].down();
  }
  if (std::optional<Error> error = CheckBounds(verbs, surroundings_.region_bytes)) return error;
  assert(verbs.size() <= kMaxVerbsPerTrip);
  for (const uint16_t node : nodes_) parts_[node] = Part{};
  nodes_.clear();
  for (const Verb& verb : verbs) {
    Part& part = parts_[Index(verb.at.node)];
    if (part.verbs++ == 0) nodes_.push_back(Index(verb.at.node));
    part.body_bytes += wire::EncodedBytes(verb);
    part.answer_bytes += wire::AnswerBytes(verb);
    if (part.body_bytes > wire::kMaxBodyBytes || part.answer_bytes > wire::kMaxBodyBytes) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("a trip to {} would move more than {} MiB; split it",
                      surroundings_.endpoints[Index(verb.at.node)].ToString(), wire::kMaxBodyBytes >> 20));
    }
  }
  return std::nullopt;
}

void TcpClient::Post(std::span<const Verb> verbs, Trip* trip) {
  const uint32_t index = NewUnansweredTrip();
  UnansweredTrip& unanswered = unanswered_[index];
  unanswered.trip = trip;
  unanswered.number = ++posted_;
  unanswered.frames = static_cast<uint32_t>(nodes_.size());
  unanswered.in_parts = nodes_.size() > 1;
  if (trip != nullptr) {
    trip->backend_data = reinterpret_cast<void*>(uintptr_t{index});  // NOLINT: never followed
    ++awaited_;
  } else {
    ++unawaited_;
  }
  for (const uint16_t node : nodes_) {
    EncodePart(verbs, node, index);
    if (links_[node].IsWorthSending()) links_[node].Flush();
  }
}

void TcpClient::EncodePart(std::span<const Verb> verbs, uint16_t node, uint32_t unanswered) {
  const Part& part = parts_[node];
  std::byte* to =
      links_[node].QueueFrame(sizeof(wire::FrameHeader) + part.body_bytes, part.verbs, unanswered);
  wire::FrameHeader header;
  header.body_bytes = static_cast<uint32_t>(part.body_bytes);
  header.verbs = part.verbs;
  to = wire::Store(header, to);
  for (const Verb& verb : verbs) {
    if (Index(verb.at.node) == node) to = wire::EncodeVerb(verb, to);
  }
  ++frames_;
}

uint32_t TcpClient::NewUnansweredTrip() {
  if (free_unanswered_.empty()) {
    unanswered_.emplace_back();
    return static_cast<uint32_t>(unanswered_.size() - 1);
  }
  const uint32_t index = free_unanswered_.back();
  free_unanswered_.pop_back();
  return index;
}

void TcpClient::FlushAll() {
  for (Link& link : links_) {
    if (link.has_unsent()) link.Flush();
  }
}

// ---- polling -----------------------------------------------------------------------------------------

bool TcpClient::Poll() {
  if (frames_ == 0 && timers_.empty()) return false;
  polling_ = true;
  FlushAll();
  bool progress = ReceiveAll();
  // Time that passes is no answer: silent nodes are looked for although timers were due.
  const bool time_passed = !timers_.empty() && timers_.ResumeDue(Now());
  const bool only_time = time_passed && !progress;
  progress |= time_passed;
  if (only_time || ++polls_since_look_ >= kPollsPerLook) {
    polls_since_look_ = 0;
    CheckSilence();
  }
  if (!progress) Wait();
  FlushAll();
  polling_ = false;
  return true;
}

bool TcpClient::ReceiveAll() {
  bool progress = false;
  for (uint16_t node = 0; node < links_.size(); ++node) {
    if (!links_[node].waiting().empty()) progress |= Receive(node);
  }
  return progress;
}

bool TcpClient::Receive(uint16_t node) {
  Link& link = links_[node];
  switch (link.Receive()) {
    case Outcome::kMoved: Deliver(node); return true;
    case Outcome::kEnd: BreakByLoss(node, "the node closed the connection"); return true;
    case Outcome::kBroken: BreakByLoss(node, link.transport().failure()); return true;
    case Outcome::kWantRead:
    case Outcome::kWantWrite: break;
  }
  return false;
}

void TcpClient::Wait() {
  if (frames_ != 0) {
    if (!SpinningIsFutile() && Spin()) return;
    CheckSilence();
  }
  Sleep();
}

bool TcpClient::Spin() {
  if (++waits_ % kWaitsPerTrial == 0) spins_ = kMostSpins;
  for (uint32_t spin = 0; spin < spins_; ++spin) {
    if (ReceiveAll()) {
      spins_ = std::min(kMostSpins, spins_ * 2);
      return true;
    }
    PauseProcessor();
  }
  spins_ = std::max(kFewestSpins, spins_ / 2);
  spun_in_vain_ = true;
  return false;
}

// Looked at only after spinning was in vain, and until it is not: it costs two system calls.
bool TcpClient::SpinningIsFutile() {
  if (!spun_in_vain_) return false;
  spun_in_vain_ = std::any_of(links_.begin(), links_.end(), [](Link& link) {
    return link.open() && !link.waiting().empty() && link.transport().PeerSharesProcessor();
  });
  return spun_in_vain_;
}

void TcpClient::Sleep() {
  if (frames_ == 0 && timers_.empty()) return;
  constexpr size_t kFew = 16;
  std::array<pollfd, kFew> few;
  std::vector<pollfd> many(links_.size() > kFew ? links_.size() : 0);
  pollfd* const waiting = many.empty() ? few.data() : many.data();
  nfds_t count = 0;
  for (Link& link : links_) {
    if (!link.open() || link.waiting().empty()) continue;
    const auto events = static_cast<short>(link.has_unsent() ? POLLIN | POLLOUT : POLLIN);
    waiting[count++] = {.fd = link.transport().fd(), .events = events, .revents = 0};
  }
  Nanos most = kLongestSleep;
  if (!timers_.empty()) {
    const Nanos longest = surroundings_.real_time ? kLongestSleep : kLongestSleepWithTimers;
    most = std::clamp(timers_.first_due() - Now(), Nanos(0), longest);
  }
  const timespec timeout{.tv_sec = 0, .tv_nsec = most.count()};
  ppoll(waiting, count, &timeout, nullptr);
}

void TcpClient::CheckSilence() {
  const Nanos now = Now();
  Nanos longest{0};
  for (Link& link : links_) {
    if (link.waiting().empty()) continue;
    std::optional<Nanos>& since = link.silent_since();
    if (!since.has_value()) since = now;
    longest = std::max(longest, now - *since);
  }
  const Nanos suspicious = surroundings_.answer_timeout / kProbesPerTimeout;
  if (longest < suspicious) return;
  const Nanos patience = Patience(now, longest);
  for (uint16_t node = 0; node < links_.size(); ++node) {
    Link& link = links_[node];
    if (link.waiting().empty() || !link.silent_since().has_value()) continue;
    const Nanos silence = now - *link.silent_since();
    if (silence < patience) continue;
    BreakByLoss(node, fmt::format("the node did not answer for {} ms",
                                  std::chrono::duration_cast<std::chrono::milliseconds>(silence).count()));
  }
  ProbeOthers();
}

Nanos TcpClient::Patience(Nanos now, Nanos longest_silence) {
  const Nanos began = std::max(now - longest_silence, waited_until_);
  waited_ -= std::min(waited_, began - waited_until_);  // answers came meanwhile
  waited_ += now - began;
  waited_until_ = now;
  const Nanos whole = surroundings_.answer_timeout;
  return waited_ < kTimeoutsInARow * whole ? whole : whole / kProbesPerTimeout;
}

// An operation that visits nodes one after the other would wait for each one that hangs. So while one is
// silent, the others are asked for a word: their silence is counted at the same time.
void TcpClient::ProbeOthers() {
  const Nanos now = Now();
  if (probed_at_.has_value() && now - *probed_at_ < surroundings_.answer_timeout / kProbesPerTimeout) return;
  probed_at_ = now;
  for (uint16_t node = 0; node < links_.size(); ++node) {
    const bool idle = links_[node].open() && links_[node].waiting().empty();
    if (!idle || surroundings_.region_bytes[node] < sizeof(uint64_t)) continue;
    Verb probe;
    probe.kind = VerbKind::kRead;
    probe.purpose = Purpose::kMaintenance;
    probe.at = FarAddr(NodeId{node}, 0);
    probe.size = sizeof(uint64_t);
    Detach(Order::kInOrder, std::span(&probe, 1));
  }
}

// ---- answers -----------------------------------------------------------------------------------------

void TcpClient::Deliver(uint16_t node) {
  Link& link = links_[node];
  while (link.open()) {
    const std::span<const std::byte> bytes = link.in().bytes();
    if (bytes.size() < sizeof(wire::ReplyHeader)) return;
    const auto header = wire::Load<wire::ReplyHeader>(bytes.data());
    if (wire::CheckHeader(header) != nullptr) return BreakByLoss(node, "the node sent what makes no sense");
    const size_t total = sizeof(header) + header.body_bytes;
    if (bytes.size() < total) return;
    const std::span<const std::byte> body = bytes.subspan(sizeof(header), header.body_bytes);
    if (header.kind == wire::ReplyKind::kGoodbye) {
      // CheckHeader bounds it. The node is not trusted to write to a terminal, here and below.
      return BreakByGoodbye(node, *wire::CodeOf(header.status), Escape(AsText(body)));
    }
    if (link.waiting().empty()) return BreakByLoss(node, "the node sent a reply to no request");
    const Link::Waiting frame = link.waiting().Pop();
    --frames_;
    Answer(node, frame, header, body);
    if (broken_.has_value() && link.waiting().empty()) link.Close();  // so that its node knows, too
  }
}

void TcpClient::Answer(uint16_t node, const Link::Waiting& frame, const wire::ReplyHeader& header,
                       std::span<const std::byte> body) {
  UnansweredTrip& unanswered = unanswered_[frame.unanswered];
  --unanswered.frames;
  bool fits = true;
  if (header.kind == wire::ReplyKind::kError) {
    unanswered.error.emplace(*wire::CodeOf(header.status), Escape(AsText(body)));
  } else if (unanswered.trip != nullptr) {
    fits = wire::DecodeAnswers(unanswered.trip->verbs, NodeId{node}, body);
    if (unanswered.in_parts || !fits) unanswered.changed |= PartMutates(unanswered.trip->verbs, node);
  }
  links_[node].ConsumeIn(sizeof(header) + header.body_bytes);
  if (!fits) {
    unanswered.lost = true;
    unanswered.lost_node = node;
    links_[node].SetDown(LossOf(node, kNonsense));
  }
  if (unanswered.frames == 0) Finish(frame.unanswered);
  if (!fits) BreakByLoss(node, kNonsense);
}

void TcpClient::Lose(uint16_t node, const Link::Waiting& frame, bool maybe_executed) {
  UnansweredTrip& unanswered = unanswered_[frame.unanswered];
  --unanswered.frames;
  unanswered.lost = true;
  unanswered.lost_node = node;
  if (unanswered.trip != nullptr && maybe_executed)
    unanswered.changed |= PartMutates(unanswered.trip->verbs, node);
  if (unanswered.frames == 0) Finish(frame.unanswered);
}

void TcpClient::Finish(uint32_t index) {
  UnansweredTrip& unanswered = unanswered_[index];
  Trip* const trip = unanswered.trip;
  if (trip == nullptr) {
    --unawaited_;
  } else {
    --awaited_;
    if (unanswered.lost || unanswered.error.has_value()) {
      trip->Fail(ErrorOf(unanswered));
    } else {
      trip->Succeed();
    }
  }
  unanswered = UnansweredTrip{};
  free_unanswered_.push_back(index);
  if (trip != nullptr) trip->Resume();
}

Error TcpClient::ErrorOf(UnansweredTrip& unanswered) const {
  if (unanswered.lost) {
    const Error& reason = broken_.has_value() ? *broken_ : *links_[unanswered.lost_node].down();
    if (unanswered.changed) return LostCompletion(unanswered.trip->verbs, reason.message());
    return reason;
  }
  if (unanswered.changed && unanswered.error->code() != ErrorCode::kOutcomeUnknown) {
    return LostCompletion(unanswered.trip->verbs,
                          fmt::format("one of several nodes refused ({})", unanswered.error->message()));
  }
  return std::move(*unanswered.error);
}

// ---- breaking ----------------------------------------------------------------------------------------

Error TcpClient::LossOf(uint16_t node, std::string_view why) const {
  return Error(ErrorCode::kUnavailable, fmt::format("the connection to {} was lost: {}; connect again",
                                                    surroundings_.endpoints[node].ToString(), why));
}

void TcpClient::BreakByLoss(uint16_t node, std::string_view why) {
  Break(node, LossOf(node, why), /*said_goodbye=*/false);
}

void TcpClient::BreakByGoodbye(uint16_t node, ErrorCode code, std::string_view message) {
  const std::string address = surroundings_.endpoints[node].ToString();
  if (code != ErrorCode::kFenced) {
    return Break(
        node,
        Error(ErrorCode::kUnavailable, fmt::format("{} said goodbye: {}; connect again", address, message)),
        /*said_goodbye=*/true);
  }
  BreakAll(Error(code, fmt::format("client {} was fenced at {}: another client took it for dead; connect "
                                   "again as a new client",
                                   Number(id()), address)));
  Break(node, *broken_, /*said_goodbye=*/true);
}

void TcpClient::Break(uint16_t node, const Error& reason, bool said_goodbye) {
  Link& link = links_[node];
  // Everything that is resumed on the way finds the node out of reach, so nothing is queued from here on.
  link.SetDown(reason);
  std::vector<Link::Waiting> unsent;
  while (!link.waiting().empty() && !link.HasLeft(link.waiting().newest()))
    unsent.push_back(link.waiting().PopNewest());
  link.DropUnsent();
  std::vector<Link::Waiting> sent;
  while (!link.waiting().empty()) sent.push_back(link.waiting().Pop());
  frames_ -= unsent.size() + sent.size();
  link.Close();
  for (const Link::Waiting& frame : sent) Lose(node, frame, !said_goodbye);
  for (size_t i = unsent.size(); i > 0; --i) Lose(node, unsent[i - 1], /*maybe_executed=*/false);
}

void TcpClient::BreakAll(Error reason) {
  if (!broken_.has_value()) broken_ = std::move(reason);
  std::vector<std::pair<uint16_t, Link::Waiting>> unsent;
  for (uint16_t node = 0; node < links_.size(); ++node) {
    Link& link = links_[node];
    while (!link.waiting().empty() && !link.HasLeft(link.waiting().newest()))
      unsent.emplace_back(node, link.waiting().PopNewest());
    link.DropUnsent();
  }
  frames_ -= unsent.size();
  for (Link& link : links_) {
    if (link.waiting().empty()) link.Close();  // so that their nodes know, too
  }
  for (size_t i = unsent.size(); i > 0; --i)
    Lose(unsent[i - 1].first, unsent[i - 1].second, /*maybe_executed=*/false);
}

}  // namespace farside::fabric::tcp
