// A client of the tcp fabric: one connection to every node, and no thread of its own.
//
// Start encodes a trip into the send buffers of its nodes, one frame each; Poll hands them to the kernel with
// one system call per node, however many they are, takes in what came, and gives out the answers. Bytes to
// write are copied by Start, and bytes read are copied out of the receive buffer in Poll, so nothing that is
// in flight points into a trip.
//
// When a connection ends, nothing goes to its node any more, and the client goes on with the others. Of the
// frames of the connection that ended, those that had not left as a whole took no effect. The others did or
// did not, unless the node said goodbye: it answers what it has executed before it does so.
//
// Nodes may hang one after the other, or all stop again and again: each is waited for, and then an operation
// that visits them has waited for all. So a client has patience for two that are silent for as long as a node
// may be. When it has waited for so long, it gives up every node that is silent for a part of that time,
// until it has been answered for a while.
//
// A client that some node has fenced is broken as a whole. What had been sent to other nodes is still waited
// for, so that as few outcomes as possible are unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "fabric/client.h"
#include "fabric/pending.h"
#include "fabric/tcp/endpoint.h"
#include "fabric/tcp/link.h"
#include "fabric/tcp/transport.h"
#include "fabric/tcp/wire.h"

namespace farside::fabric::tcp {

class TcpClient final : public Client {
 public:
  // All of it outlives the client.
  struct Surroundings {
    std::span<const Endpoint> endpoints;
    std::span<const uint64_t> region_bytes;
    const Clock* clock;
    Nanos answer_timeout;
    Nanos waited;  // by connecting
    bool read_only;
    bool real_time;  // the clock is the machine's
  };
  // `links` are those of the nodes, in their order, after Welcome.
  TcpClient(ClientId id, const Surroundings& surroundings, std::vector<Link> links);
  ~TcpClient() override;

  std::span<const uint64_t> region_bytes() const override { return surroundings_.region_bytes; }
  Nanos Now() const override { return surroundings_.clock->Now(); }

  bool Start(Trip& trip) override;
  void Abandon(Trip& trip) noexcept override;
  void Detach(Order order, std::span<const Verb> verbs) override;
  // What may still come of frames to a node that is out of reach concerns that node alone.
  bool HasUnawaited() const override { return unawaited_ != 0; }
  uint64_t trips_posted() const override { return posted_; }
  bool HasUnawaitedOfFirst(uint64_t posted) const override;
  bool read_only() const override { return surroundings_.read_only; }
  bool orders_reads() const override {
    return true;
  }  // a node executes frames, and verbs in them, one by one
  bool stores_back_failed_cas() const override { return false; }
  bool CanTellGoneClients() const override { return true; }
  // A system call and a frame of the network are shared by all that goes at once.
  size_t worthwhile_concurrency() const override { return 128; }
  bool Reaches(NodeId node) const override {
    return !broken_.has_value() && !links_[Index(node)].down().has_value();
  }

  void Start(Timer& timer) override { timers_.Push(timer); }
  void Abandon(Timer& timer) noexcept override { timers_.Remove(timer); }

  bool Poll() override;

 private:
  // A trip of which some frame is not answered yet.
  struct UnansweredTrip {
    Trip* trip = nullptr;  // null: abandoned or detached
    uint64_t number = 0;   // counted from 1, in the order of posting
    uint32_t frames = 0;   // that are not answered yet
    bool in_parts = false;
    bool changed = false;        // some verb has changed something, or may have
    bool lost = false;           // some frame will not be answered
    uint16_t lost_node = 0;      // the node of one
    std::optional<Error> error;  // an answer that was one
  };
  // What one trip sends to one node.
  struct Part {
    uint64_t body_bytes = 0;
    uint64_t answer_bytes = 0;
    uint8_t verbs = 0;
  };

  std::optional<Error> Plan(std::span<const Verb> verbs);
  void Post(std::span<const Verb> verbs, Trip* trip);
  void EncodePart(std::span<const Verb> verbs, uint16_t node, uint32_t unanswered);
  uint32_t NewUnansweredTrip();
  bool WillBePolled() const { return awaited_ != 0 || !timers_.empty(); }

  void FlushAll();
  // These two say whether something happened: bytes came, or a connection ended.
  bool ReceiveAll();
  bool Receive(uint16_t node);
  void Wait();
  bool Spin();
  bool SpinningIsFutile();
  void Sleep();
  void CheckSilence();
  // How long a node may be silent now.
  Nanos Patience(Nanos now, Nanos longest_silence);
  void ProbeOthers();

  void Deliver(uint16_t node);
  void Answer(uint16_t node, const Link::Waiting& frame, const wire::ReplyHeader& header,
              std::span<const std::byte> body);
  // A frame that will not be answered.
  void Lose(uint16_t node, const Link::Waiting& frame, bool maybe_executed);
  void Finish(uint32_t unanswered);
  Error ErrorOf(UnansweredTrip& unanswered) const;

  // Ends a connection. `said_goodbye`: what was not answered was not executed.
  void Break(uint16_t node, const Error& reason, bool said_goodbye);
  // Ends the client: nothing is sent any more.
  void BreakAll(Error reason);
  Error LossOf(uint16_t node, std::string_view why) const;
  void BreakByLoss(uint16_t node, std::string_view why);
  void BreakByGoodbye(uint16_t node, ErrorCode code, std::string_view message);

  const Surroundings surroundings_;
  std::vector<Link> links_;
  std::vector<UnansweredTrip> unanswered_;
  std::vector<uint32_t> free_unanswered_;
  std::vector<Part> parts_;         // of the trip being posted, by node
  std::vector<uint16_t> nodes_;     // those that have one
  size_t frames_ = 0;               // that are not answered yet
  size_t awaited_ = 0;              // flights with a trip
  size_t unawaited_ = 0;            // and without
  uint64_t posted_ = 0;             // trips
  std::optional<Nanos> probed_at_;  // when idle nodes were asked last because another one was silent
  // For how long silent nodes were waited for, as of a time; it is forgotten as fast as it has passed.
  Nanos waited_{0};
  Nanos waited_until_{0};
  TimerList timers_;
  std::optional<Error> broken_;  // of every trip from now on: the client was fenced
  bool polling_ = false;
  uint32_t spins_;  // how often to look before sleeping
  uint32_t waits_ = 0;
  bool spun_in_vain_ = false;
  uint32_t polls_since_look_ = 0;  // at the clock
};

}  // namespace farside::fabric::tcp
