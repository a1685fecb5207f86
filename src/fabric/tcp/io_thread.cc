#include "fabric/tcp/io_thread.h"

#include <sys/epoll.h>
#include <sys/socket.h>

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

Status IoThread::Accept(Descriptor listener, std::vector<std::shared_ptr<Mailbox>> all) {
  listener_ = std::move(listener);
  all_ = std::move(all);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) return Failed("epoll_ctl");
  accepting_ = true;
  return OkStatus();
}

void IoThread::Run() {
  while (!stopping_) {
    const bool traffic = (spinning_ && LookAtHot()) || LookAtAll();
    const Nanos now = server_.clock.Now();
    if (traffic) {
      const bool closely = now - last_traffic_ < kClosely;
      const bool looks = !spinning_ || ++looks_in_a_row_ % kLooksPerDoubt == 0;
      spinning_ = closely && !(looks && SpinningIsFutile());
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
  if (hot_.empty() || !again_.empty() || ++hot_looks_ % kHotLooks == 0) return false;
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
  if (spinning_ || !again_.empty()) return 0;
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
  std::swap(again_, now_);
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
      // One turn in a round: else a client that always has more would have one more each time.
      if (!connection.has_turn_ahead) UpdateInterest(connection, connection.Advance(frame_));
      traffic = true;
    }
  }
  for (const std::shared_ptr<Connection>& connection : now_) {
    connection->has_turn_ahead = false;
    UpdateInterest(*connection, connection->Advance(frame_));  // also of one that was closed meanwhile
  }
  now_.clear();
  if (letters) ReadLetters();
  return traffic;
}

void IoThread::UpdateInterest(Connection& connection, bool again) {
  if (connection.state() == Connection::State::kClosed) {
    std::erase(hot_, &connection);
    connections_.erase(&connection);
    return;
  }
  const uint32_t interest = connection.Interest();
  if (interest != connection.registered_interest) {
    epoll_event event{.events = interest, .data = {.ptr = &connection}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), &event);
    connection.registered_interest = interest;
  }
  if (connection.HasDeadline()) with_deadline_ = std::max<size_t>(with_deadline_, 1);
  if (again && !std::exchange(connection.has_turn_ahead, true))
    again_.push_back(connection.shared_from_this());
}

void IoThread::ReadLetters() {
  mailbox_->TakeAll(letters_);
  for (const Letter& letter : letters_) {
    if (letter.kind == LetterKind::kStop) {
      stopping_ = true;
      continue;
    }
    Connection& connection = *letter.connection;
    switch (letter.kind) {
      case LetterKind::kArrived: Adopt(letter.connection); break;
      case LetterKind::kCutOff: connection.OnCutOff(); break;
      case LetterKind::kFenceDone: connection.OnFenceDone(); break;
      case LetterKind::kMakeRoom: connection.OnMakeRoom(); break;
      case LetterKind::kStop: break;
    }
    // It may be gone already; a letter may be late.
    if (connections_.contains(&connection)) UpdateInterest(connection, connection.Advance(frame_));
  }
  letters_.clear();
}

void IoThread::Adopt(const std::shared_ptr<Connection>& connection) {
  const uint32_t interest = connection->Interest();
  epoll_event event{.events = interest, .data = {.ptr = connection.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd(), &event) != 0) {
    server_.log.Error("tcp: a connection cannot be served: {}", ErrnoText(errno));
    return connection->Close();
  }
  connection->registered_interest = interest;
  connections_.emplace(connection.get(), connection);
  connection->Arrive(*memory_);
}

// ---- accepting ---------------------------------------------------------------------------------------

void IoThread::AcceptSome() {
  for (int i = 0; i < kAcceptMost; ++i) {
    SocketAddress peer;
    peer.bytes = sizeof(peer.storage);
    Descriptor socket(accept4(listener_.get(), peer.get(), &peer.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.open()) {
      Deal(std::move(socket), peer);
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
    if (const std::shared_ptr<Connection> oldest = server_.lobby.TakeOldest()) oldest->AskToMakeRoom();
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  accepting_ = false;
  accept_again_ = server_.clock.Now() + kAcceptPause;
}

void IoThread::Deal(Descriptor socket, const SocketAddress& peer) {
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
  const std::shared_ptr<Mailbox>& mailbox = all_[next_++ % all_.size()];
  // Not by make_shared: a fence that it asked for may remember it for long after it is gone.
  mailbox->Send({LetterKind::kArrived,
                 std::shared_ptr<Connection>(new Connection(std::move(transport), peer, server_, mailbox))});
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
  for (const auto& [connection, owner] : connections_) connection->OnStop();
  connections_.clear();
  again_.clear();
  for (const Letter& letter : mailbox_->Close()) {
    if (letter.kind == LetterKind::kArrived) letter.connection->Close();
  }
}

}  // namespace farside::fabric::tcp
