// Op: one operation of a client, and the place where its trips are posted and counted.
//
//   auto [old, bucket] = co_await op.InOrder(Cas(lock, 0, me), Read<Bucket>(at));   // one trip
//
// An error of a trip ends the awaiting task (see task.h); `.Outcome()` looks at it instead.
#pragma once

#include <array>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fabric/client.h"
#include "fabric/counters.h"
#include "fabric/trip.h"

namespace farside::fabric {

template <class... TypedVerbs>
class TripAwaiter;
class PauseAwaiter;

class Op {
 public:
  // `kind` is what the operation is counted as unless End() says better.
  Op(Client& client, OpKind kind) : client_(client), kind_(kind) { tally_.operations = 1; }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op() { client_.counters().Add(kind_, outcome_, tally_); }

  Client& client() { return client_; }
  const OpTally& tally() const { return tally_; }

  // One trip to one node; the answers come back as a tuple (a single verb's as itself).
  template <class... TypedVerbs>
  TripAwaiter<TypedVerbs...> InOrder(TypedVerbs... verbs) {
    return TripAwaiter<TypedVerbs...>(*this, Order::kInOrder, std::move(verbs)...);
  }
  // Without order between the verbs; they may go to several nodes at once.
  template <class... TypedVerbs>
  TripAwaiter<TypedVerbs...> Together(TypedVerbs... verbs) {
    return TripAwaiter<TypedVerbs...>(*this, Order::kTogether, std::move(verbs)...);
  }
  // A message that the node's CPU answers.
  TripAwaiter<CallVerb> Call(NodeId node, CallId call, std::string_view request);

  // Posts verbs without a waiter. Their payloads are copied, and their outcome is never reported.
  template <class... TypedVerbs>
  void Detach(Order order, TypedVerbs... verbs) {
    const std::array<Verb, sizeof...(TypedVerbs)> lowered{verbs.Lower()...};
    CountDetached(lowered);
    client_.Detach(order, lowered);
  }

  // Lets time pass.
  PauseAwaiter Pause(Nanos duration);
  void CountRetry() { ++tally_.retries; }

  // Says how the operation ended. Without a call of End, it counts as failed.
  void End(OpKind kind, OpOutcome outcome) {
    kind_ = kind;
    outcome_ = outcome;
  }

  // The same for several operations that share their trips.
  void EndTogether(OpKind kind, uint64_t done, uint64_t refused) {
    End(kind, OpOutcome::kDone);
    tally_.operations = done;
    client_.counters().at(kind, OpOutcome::kRefused).operations += refused;
  }

  // ---- for awaiters
  bool Start(Trip& trip) {
    if (trip.verbs.size() == 1) {
      CountSingle(trip.verbs[0]);
    } else {
      CountPosted(trip);
    }
    return client_.Start(trip);
  }
  void CountAnswered(std::span<const Verb> verbs) {
    for (const Verb& verb : verbs) {
      if (IsAtomic(verb.kind) && !Succeeds(verb, verb.old))
        ++tally_.by_purpose[static_cast<size_t>(verb.purpose)].failed_cas;
    }
  }

 private:
  // CountPosted for the usual trip, which has one verb.
  void CountSingle(const Verb& verb) {
    CountVerb(verb);
    const bool maintenance = verb.purpose == Purpose::kMaintenance;
    tally_.maintenance_trips += maintenance ? 1 : 0;
    tally_.end_to_end_trips += maintenance ? 0 : 1;
    tally_.depth += maintenance ? 0 : 1;
    tally_.index_trips += verb.purpose == Purpose::kIndex ? 1 : 0;
  }
  void CountVerb(const Verb& verb) {
    VerbTally& tally = tally_.by_purpose[static_cast<size_t>(verb.purpose)];
    ++tally.verbs[static_cast<size_t>(verb.kind)];
    const bool reads = verb.kind == VerbKind::kRead;
    tally.bytes_read += reads || IsAtomic(verb.kind) ? verb.size : 0;
    tally.bytes_written += reads ? 0 : verb.size;
  }
  void CountPosted(const Trip& trip);
  void CountDetached(std::span<const Verb> verbs);

  Client& client_;
  OpKind kind_;
  OpOutcome outcome_ = OpOutcome::kFailed;
  OpTally tally_;
};

// The part of a trip's awaiter that does not depend on the types of its verbs.
class TripAwaiterBase {
 public:
  TripAwaiterBase(Op& op, Order order) : op_(op), order_(order) {}
  TripAwaiterBase(const TripAwaiterBase&) = delete;
  TripAwaiterBase& operator=(const TripAwaiterBase&) = delete;
  ~TripAwaiterBase() {
    if (in_flight_ && !trip_.done()) op_.client().Abandon(trip_);
  }

  // True if the coroutine must stay suspended; false if the trip succeeded at once.
  template <class Promise>
  bool Suspend(std::coroutine_handle<Promise> waiter, bool unwrap) {
    PromiseBase* failing = unwrap ? static_cast<PromiseBase*>(&waiter.promise()) : nullptr;
    if (!trip_.done()) {
      trip_.SetWaiter(waiter, failing);
      return true;
    }
    if (failing == nullptr) return false;
    failing->Fail(trip_.TakeError()).resume();  // may destroy *this
    return true;
  }

 protected:
  // True if the trip has ended well already.
  bool Post(std::span<Verb> verbs) {
    trip_.verbs = verbs;
    trip_.order = order_;
    in_flight_ = true;
    return op_.Start(trip_) && !trip_.failed();
  }

  Op& op_;
  Trip trip_;

 private:
  Order order_;
  bool in_flight_ = false;
};

template <class... TypedVerbs>
class [[nodiscard]] TripAwaiter : private TripAwaiterBase {
  static constexpr size_t kVerbs = sizeof...(TypedVerbs);
  static_assert(kVerbs >= 1 && kVerbs <= kMaxVerbsPerTrip);
  using Answers =
      std::conditional_t<kVerbs == 1, std::tuple_element_t<0, std::tuple<typename TypedVerbs::AnswerType...>>,
                         std::tuple<typename TypedVerbs::AnswerType...>>;

 public:
  TripAwaiter(Op& op, Order order, TypedVerbs... verbs)
      : TripAwaiterBase(op, order), typed_(std::move(verbs)...) {}

  // co_await trip: the answers; an error ends the awaiting coroutine.
  bool await_ready() { return Launch(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> waiter) {
    return Suspend(waiter, true);
  }
  Answers await_resume() { return TakeAnswers(std::make_index_sequence<kVerbs>()); }

  // co_await trip.Outcome(): a Result of the answers.
  auto Outcome() { return OutcomeAwaiter(*this); }

 private:
  class OutcomeAwaiter {
   public:
    explicit OutcomeAwaiter(TripAwaiter& trip) : trip_(trip) {}
    bool await_ready() { return trip_.Launch(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiter) {
      return trip_.Suspend(waiter, false);
    }
    Result<Answers> await_resume() {
      if (trip_.trip_.failed()) return trip_.trip_.TakeError();
      return trip_.await_resume();
    }

   private:
    TripAwaiter& trip_;
  };

  // The typed verbs have their final addresses only now, so no pointer to them may be taken before. Several
  // verbs are copied into one array; a single one stays where it is.
  bool Launch() {
    if constexpr (kVerbs == 1) {
      std::get<0>(typed_).Lower();
    } else {
      lowered_ =
          std::apply([](auto&... typed) { return std::array<Verb, kVerbs>{typed.Lower()...}; }, typed_);
    }
    return Post(Lowered());
  }
  std::span<Verb> Lowered() {
    if constexpr (kVerbs == 1) {
      return {&std::get<0>(typed_).verb, 1};
    } else {
      return lowered_;
    }
  }

  template <size_t... kIndex>
  Answers TakeAnswers(std::index_sequence<kIndex...>) {
    const std::span<Verb> lowered = Lowered();
    op_.CountAnswered(lowered);
    return Answers(std::get<kIndex>(typed_).Answer(lowered[kIndex])...);
  }

  struct Nothing {};
  std::tuple<TypedVerbs...> typed_;
  [[no_unique_address]] std::conditional_t<kVerbs == 1, Nothing, std::array<Verb, kVerbs>> lowered_;
};

// Whether the answer of a typed verb is written into the typed verb itself.
template <class TypedVerb>
inline constexpr bool kHoldsItsAnswer = std::is_same_v<TypedVerb, CallVerb>;
template <class T>
inline constexpr bool kHoldsItsAnswer<ReadVerb<T>> = true;

// A trip whose verbs are known only at run time. Add them, then co_await it; Old() gives the answers of
// atomics. Only the plain verbs: READs bring their own buffers (Read(at, into)), and a Call stands alone
// (op.Call()). `Verbs` is the container of the verbs.
template <class Verbs>
class BasicBatch : private TripAwaiterBase {
 public:
  BasicBatch(Op& op, Order order) : TripAwaiterBase(op, order) {}

  // Returns the index of the verb, for Old().
  template <class TypedVerb>
  requires(!kHoldsItsAnswer<TypedVerb>) size_t Add(TypedVerb typed) {
    assert(verbs_.size() < kMaxVerbsPerTrip);
    verbs_.push_back(typed.Lower());
    return verbs_.size() - 1;
  }
  size_t size() const { return verbs_.size(); }
  uint64_t Old(size_t index) const { return verbs_[index].old; }

  bool await_ready() { return verbs_.empty() || Post(verbs_); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> waiter) {
    return Suspend(waiter, true);
  }
  void await_resume() { op_.CountAnswered(verbs_); }

 private:
  Verbs verbs_;
};

// A vector of verbs with a fixed capacity, without heap memory.
template <size_t kMost>
class VerbArray {
  static_assert(kMost >= 1 && kMost <= kMaxVerbsPerTrip);

 public:
  void push_back(const Verb& verb) {
    assert(size_ < kMost);
    verbs_[size_++] = verb;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Verb* data() { return verbs_.data(); }
  Verb* begin() { return verbs_.data(); }
  Verb* end() { return verbs_.data() + size_; }
  const Verb& operator[](size_t index) const { return verbs_[index]; }

 private:
  std::array<Verb, kMost> verbs_;
  size_t size_ = 0;
};

// For structural changes: its verbs live on the heap.
using Batch = BasicBatch<std::vector<Verb>>;
// For frequent operations: its verbs live in the frame of the awaiting coroutine, so it allocates nothing.
template <size_t kMost>
using SmallBatch = BasicBatch<VerbArray<kMost>>;

// A trip of READs that are in one array already, which must stay valid until the trip has ended.
class [[nodiscard]] ReadsTrip : private TripAwaiterBase {
 public:
  ReadsTrip(Op& op, Order order, std::span<Verb> reads) : TripAwaiterBase(op, order), reads_(reads) {
    assert(reads.size() <= kMaxVerbsPerTrip);
  }

  bool await_ready() { return reads_.empty() || Post(reads_); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> waiter) {
    return Suspend(waiter, true);
  }
  void await_resume() {}

 private:
  const std::span<Verb> reads_;
};

class [[nodiscard]] PauseAwaiter {
 public:
  PauseAwaiter(Client& client, Nanos due) : client_(client), timer_(due) {}
  PauseAwaiter(const PauseAwaiter&) = delete;
  PauseAwaiter& operator=(const PauseAwaiter&) = delete;
  ~PauseAwaiter() {
    if (waiting_) client_.Abandon(timer_);
  }
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    timer_.waiter = waiter;
    waiting_ = true;
    client_.Start(timer_);
  }
  void await_resume() { waiting_ = false; }

 private:
  Client& client_;
  Timer timer_;
  bool waiting_ = false;
};

inline TripAwaiter<CallVerb> Op::Call(NodeId node, CallId call, std::string_view request) {
  return TripAwaiter<CallVerb>(*this, Order::kInOrder, CallVerb(node, call, request));
}
inline PauseAwaiter Op::Pause(Nanos duration) { return PauseAwaiter(client_, client_.Now() + duration); }

// Cuts a client off from every node. When the task has ended, no verb of the victim can take effect any more,
// and its locks may be broken and its work finished.
Task<Done> FenceEverywhere(Op& op, ClientId victim);

}  // namespace farside::fabric
