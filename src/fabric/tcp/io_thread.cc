#include "fabric/tcp/io_thread.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/descriptor.h"
#include "base/pause.h"

namespace farside::fabric::tcp {
namespace {

using namespace std::chrono_literals;

constexpr size_t kEvents = 64;
// Requests that follow each other within kClosely are looked for without sleeping, for kSpinFor. A client
// that sleeps and is woken for each answer is slower than one that need not, so kClosely is longer: else they
// would never meet awake.
constexpr Nanos kSpinFor = 50us;
constexpr Nanos kClosely = 200us;
// While spinning, the connections that spoke last are asked directly, if they are few; every so often all
// are.
constexpr size_t kMostHot = 4;
constexpr uint32_t kHotLooks = 8;
// How many requests are met without sleeping before it is asked again whether that is any good.
constexpr uint32_t kLooksPerDoubt = 64;
// How long those that have more to do are gone on with, until the others are looked at again.
constexpr Nanos kMoreFor = 50us;
// While small requests come closely, large ones get one part in so many of a thread's time.
constexpr int kLargePart = 8;
// How much less than the others the thread at the door gets of a busy processor: a tenth.
constexpr int kDoorNice = 10;
// How often deadlines are looked at, and how long a thread with deadlines sleeps at most.
constexpr Nanos kLookEvery = 250ms;
constexpr int kDeadlineMilliseconds = 100;
// How long to accept no client when there are no descriptors left.
constexpr Nanos kAcceptPause = 200ms;
constexpr int kAcceptMost = 16;  // at once, until others have their turn
// Sockets beyond those of clients and strangers: they were accepted, or have to go, and their thread has not
// heard of it yet.
constexpr size_t kUnderWay = 256;
// How many strangers go when there are no descriptors left.
constexpr int kMakeRoomFor = 16;

// Of the thread that calls. False: a sandbox does not allow it.
bool LowerPriority() {
  const auto self = static_cast<id_t>(::gettid());
  return ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + kDoorNice) == 0;
}

Error Failed(std::string_view what) {
  return Error(ErrorCode::kUnavailable, fmt::format("{}: {}", what, ErrnoText(errno)));
}

}  // namespace

Status IoThread::Open() {
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.open() || mailbox_->bell() < 0) return Failed("a thread of the server has no descriptors");
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, mailbox_->bell(), &event) != 0) return Failed("epoll_ctl");
  return OkStatus();
}

Status IoThread::StandAtDoor(Descriptor listener, std::vector<std::shared_ptr<Mailbox>> serving) {
  listener_ = std::move(listener);
  serving_ = std::move(serving);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) return Failed("epoll_ctl");
  accepting_ = true;
  return OkStatus();
}

void IoThread::Run() {
  if (is_door() && !LowerPriority())
    server_.log.Warn("tcp: strangers take as much time as clients: setpriority: {}", ErrnoText(errno));
  while (!stopping_) {
    const bool traffic = (spinning_ && LookAtHot()) || LookAtAll();
    const Nanos now = server_.clock.Now();
    if (traffic) {
      const bool closely = now - last_traffic_ < kClosely;
      const bool looks = !spinning_ || ++looks_in_a_row_ % kLooksPerDoubt == 0;
      spinning_ = closely && !is_door() && !(looks && SpinningIsFutile());
      last_traffic_ = now;
    } else if (spinning_) {
      spinning_ = now - last_traffic_ < kSpinFor;
    }
    if (now - last_look_ >= kLookEvery) CheckDeadlines();
  }
  StopAll();
}

bool IoThread::SpinningIsFutile() const {
  return std::any_of(hot_.begin(), hot_.end(),
                     [](const Connection* connection) { return connection->PeerSharesProcessor(); });
}

bool IoThread::LookAtHot() {
  // Others have their turn too.
  if (hot_.empty() || !again_.empty() || !large_.empty() || ++hot_looks_ % kHotLooks == 0) return false;
  bool traffic = false;
  for (size_t i = hot_.size(); i > 0; --i) {
    Connection& connection = *hot_[i - 1];
    const uint64_t before = connection.received();
    const bool again = connection.Advance(frame_);
    traffic |= connection.received() != before;
    UpdateInterest(connection, again);  // may take it out of the list
  }
  if (!traffic) PauseProcessor();
  return traffic;
}

int IoThread::SleepMilliseconds() const {
  if (spinning_ || !again_.empty() || !large_.empty()) return 0;
  const bool accepts_later = listener_.open() && !accepting_;
  const bool reports_later =
      listener_.open() && (server_.stranger_log.HasLeftOut() || server_.client_log.HasLeftOut());
  return with_deadline_ != 0 || accepts_later || reports_later ? kDeadlineMilliseconds : -1;
}

bool IoThread::LookAtAll() {
  std::array<epoll_event, kEvents> events;
  const int ready = epoll_wait(epoll_.get(), events.data(), kEvents, SleepMilliseconds());
  bool letters = false;
  bool traffic = false;
  if (ready > 0) hot_.clear();
  for (int i = 0; i < ready; ++i) {
    if (events[i].data.ptr == nullptr) {
      letters = true;
    } else if (events[i].data.ptr == this) {
      AcceptSome();
    } else {
      Connection& connection = *static_cast<Connection*>(events[i].data.ptr);
      if (hot_.size() < kMostHot) hot_.push_back(&connection);
      if ((events[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) connection.OnHangup();
      if (connection.IsReceivingLarge()) {
        UpdateInterest(connection, true);
        continue;
      }
      // One turn in a round: else a client that always has more would have one more each time.
      if (!connection.has_turn_ahead) UpdateInterest(connection, connection.Advance(frame_));
      traffic = true;
    }
  }
  if (!again_.empty()) GoOnWithSome();
  if (!large_.empty()) GoOnWithLarge(traffic);
  if (letters) ReadLetters();
  return traffic;
}

void IoThread::GoOnWithSome() {
  const Nanos begun = server_.clock.Now();
  for (size_t left = again_.size(); left > 0; --left) {
    const std::shared_ptr<Connection> connection = std::move(again_.front());
    again_.pop_front();
    connection->has_turn_ahead = false;
    UpdateInterest(*connection, connection->Advance(frame_));  // also of one that was closed meanwhile
    if (server_.clock.Now() - begun >= kMoreFor) return;
  }
}

// One turn, and then none for a while if there are small requests: each of them waits for one turn at most.
void IoThread::GoOnWithLarge(bool traffic) {
  const Nanos begun = server_.clock.Now();
  if (begun < large_again_ && (traffic || begun - last_traffic_ < kClosely)) return;
  const std::shared_ptr<Connection> connection = std::move(large_.front());
  large_.pop_front();
  connection->has_turn_ahead = false;
  UpdateInterest(*connection, connection->Advance(frame_));
  const Nanos ended = server_.clock.Now();
  large_again_ = ended + (kLargePart - 1) * (ended - begun);
}

void IoThread::UpdateInterest(Connection& connection, bool again) {
  if (connection.state() == Connection::State::kClosed) {
    if (is_door()) server_.lobby.Leave(connection);
    std::erase(hot_, &connection);
    connections_.erase(&connection);
    return;
  }
  if (connection.IsStranger() != is_door()) return HandOver(connection);
  const bool large = connection.IsReceivingLarge();
  if (again && !std::exchange(connection.has_turn_ahead, true))
    (large ? large_ : again_).push_back(connection.shared_from_this());
  // Its turn will come: the kernel need not say again that there is more, and has room to tell of others.
  const bool is_known = large && connection.has_turn_ahead;
  const uint32_t interest = connection.Interest() & ~(is_known ? uint32_t{EPOLLIN} : 0);
  if (interest != connection.registered_interest) {
    epoll_event event{.events = interest, .data = {.ptr = &connection}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), &event);
    connection.registered_interest = interest;
  }
  if (connection.HasDeadline()) with_deadline_ = std::max<size_t>(with_deadline_, 1);
}

void IoThread::HandOver(Connection& connection) {
  const auto found = connections_.find(&connection);
  const std::shared_ptr<Connection> owned = std::move(found->second);
  connections_.erase(found);
  std::erase(hot_, &connection);
  if (std::exchange(connection.has_turn_ahead, false)) {
    std::erase(again_, owned);
    std::erase(large_, owned);
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.fd(), nullptr);
  if (is_door()) server_.lobby.Leave(connection);
  Mailbox& to = is_door() ? *serving_[next_++ % serving_.size()] : *door_;
  if (!to.Send({LetterKind::kArrived, owned})) connection.Close();  // the server ends
}

void IoThread::ReadLetters() {
  mailbox_->TakeAll(letters_);
  for (const Letter& letter : letters_) {
    if (letter.kind == LetterKind::kStop) {
      stopping_ = true;
      continue;
    }
    Connection& connection = *letter.connection;
    if (letter.kind == LetterKind::kArrived) Adopt(letter.connection);
    // A letter may be late: the connection is gone, or belongs to another thread.
    if (!connections_.contains(&connection)) continue;
    switch (letter.kind) {
      case LetterKind::kCutOff: connection.OnCutOff(); break;
      case LetterKind::kFenceDone: connection.OnFenceDone(); break;
      case LetterKind::kMakeRoom: connection.OnMakeRoom(); break;
      case LetterKind::kArrived:
      case LetterKind::kStop: break;
    }
    // A crowd may arrive at once: it has its turns among the others.
    const bool arrives = letter.kind == LetterKind::kArrived && !is_door();
    UpdateInterest(connection, arrives || connection.Advance(frame_));
  }
  letters_.clear();
}

void IoThread::Adopt(const std::shared_ptr<Connection>& connection) {
  const uint32_t interest = connection->Interest();
  epoll_event event{.events = interest, .data = {.ptr = connection.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd(), &event) != 0) {
    LimitedLog& log = is_door() ? server_.stranger_log : server_.client_log;
    log.Error(server_.clock.Now(), "tcp: a connection cannot be served: {}", ErrnoText(errno));
    return connection->Close();
  }
  connection->registered_interest = interest;
  connections_.emplace(connection.get(), connection);
  if (is_door()) {
    EnterLobby(connection);
  } else {
    connection->ArriveAt(*memory_, mailbox_);
  }
}

// By a letter, as the thread may be in the middle of its connections.
void IoThread::EnterLobby(const std::shared_ptr<Connection>& connection) {
  if (std::shared_ptr<Connection> oldest = server_.lobby.Enter(connection, connection->network()))
    mailbox_->Send({LetterKind::kMakeRoom, std::move(oldest)});
}

// ---- accepting ---------------------------------------------------------------------------------------

void IoThread::AcceptSome() {
  for (int i = 0; i < kAcceptMost; ++i) {
    SocketAddress peer;
    peer.bytes = sizeof(peer.storage);
    Descriptor socket(accept4(listener_.get(), peer.get(), &peer.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.open()) {
      LetIn(std::move(socket), peer);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return PauseAccepting(errno);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    }
    // Else it was the connection that failed, before it was accepted: on to the next.
  }
}

void IoThread::PauseAccepting(int error) {
  server_.stranger_log.Error(
      server_.clock.Now(),
      "tcp: no client can connect for now: {}; raise the limit of open files (ulimit -n)", ErrnoText(error));
  for (int i = 0; i < kMakeRoomFor; ++i) {
    if (std::shared_ptr<Connection> oldest = server_.lobby.TakeOldest())
      mailbox_->Send({LetterKind::kMakeRoom, std::move(oldest)});
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  accepting_ = false;
  accept_again_ = server_.clock.Now() + kAcceptPause;
}

void IoThread::LetIn(Descriptor socket, const SocketAddress& peer) {
  const ServerOptions& options = server_.options;
  if (server_.open.fetch_add(1) >= options.max_connections + options.max_strangers + kUnderWay) {
    server_.open.fetch_sub(1);
    server_.stranger_log.Warn(server_.clock.Now(), "tcp: {} was refused: there are too many connections",
                              peer.ToString());
    return;
  }
  PrepareSocket(socket.get(), peer);
  const int fd = socket.get();
  Transport transport(std::move(socket), server_.tls.has_value() ? server_.tls->Accept(fd) : nullptr);
  if (server_.tls.has_value() && !transport.secure()) {
    server_.open.fetch_sub(1);
    server_.stranger_log.Error(server_.clock.Now(), "tcp: {} was refused: OpenSSL has no memory for it",
                               peer.ToString());
    return;
  }
  // Not by make_shared: a fence that it asked for may remember it for long after it is gone.
  const std::shared_ptr<Connection> connection(new Connection(std::move(transport), peer, server_));
  Adopt(connection);
  UpdateInterest(*connection, connection->Advance(frame_));
}

// ---- time and the end --------------------------------------------------------------------------------

void IoThread::CheckDeadlines() {
  const Nanos now = server_.clock.Now();
  last_look_ = now;
  if (listener_.open() && !accepting_ && now >= accept_again_) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
    accepting_ = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0;
  }
  if (listener_.open()) {
    server_.stranger_log.ReportLeftOut(now);
    server_.client_log.ReportLeftOut(now);
  }
  if (with_deadline_ == 0) return;
  with_deadline_ = 0;
  std::vector<Connection*> late;
  for (const auto& [connection, owner] : connections_) {
    if (!connection->HasDeadline()) continue;
    ++with_deadline_;
    if (connection->IsLate(now)) late.push_back(connection);
  }
  for (Connection* connection : late) {
    connection->OnDeadline();
    UpdateInterest(*connection, false);
  }
}

void IoThread::StopAll() {
  listener_.Close();
  for (const auto& [connection, owner] : connections_) {
    connection->OnStop();
    if (is_door()) server_.lobby.Leave(*connection);
  }
  connections_.clear();
  again_.clear();
  for (const Letter& letter : mailbox_->Close()) {
    if (letter.kind == LetterKind::kArrived) letter.connection->Close();
  }
}

}  // namespace farside::fabric::tcp
