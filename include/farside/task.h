// Task<T>: an operation that runs as a coroutine and ends with a T or with an Error.
//
// A Task is lazy: nothing happens until another task awaits it, or an executor (Session::Run) starts it.
// Awaiting a Task yields its T. An Error ends the awaiting coroutine too (its destructors run), and so on up
// to the first task that awaits an Outcome(); so a sequence of operations is straight-line code:
//
//   Task<int> Caller() {
//     int n = co_await Callee();                         // an Error of Callee ends Caller with it
//     Result<int> m = co_await Callee().Outcome();       // here the Error is looked at instead
//     if (n < 0) co_return Error(ErrorCode::kCorrupt, "negative count");
//     co_return n;
//   }
//
// Control returns to the awaiting task by symmetric transfer. A callee that ends without suspending, which is
// the usual case on fabrics that complete at once, needs no transfer: its caller is still inside
// await_suspend and continues there. So a loop over any number of awaits uses constant stack, even in builds
// whose compiler cannot turn the transfer into a jump (sanitizers, -O0). Frames come from a per-thread cache
// (FrameCache): a steady state allocates nothing.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "farside/result.h"

namespace farside {

// Memory for coroutine frames, recycled per thread and size. No behaviour depends on what the cache holds, so
// it may be thread-local.
class FrameCache {
 public:
  static void* Allocate(size_t bytes);
  static void Free(void* frame, size_t bytes) noexcept;
};

// The part of a task's promise that does not depend on T.
class PromiseBase {
 public:
  static void* operator new(size_t bytes) { return FrameCache::Allocate(bytes); }
  static void operator delete(void* frame, size_t bytes) noexcept { FrameCache::Free(frame, bytes); }

  std::suspend_always initial_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { std::terminate(); }  // errors are values here

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  // Ends this coroutine with `error` although it is suspended at some co_await, and returns the coroutine
  // that runs next: the first one up the chain that awaits an outcome. The frames in between stay suspended
  // until their owner destroys them.
  std::coroutine_handle<> Fail(Error error) noexcept {
    error_.emplace(std::move(error));
    return Leave();
  }

  // The coroutine that runs when this one has ended. If the starter is still inside the call that started
  // this coroutine, that is none: the call returns, and the starter continues.
  std::coroutine_handle<> Leave() noexcept {
    PromiseBase* ended = this;
    while (!ended->starting_) {
      if (!ended->failed() || ended->unwrapping_parent_ == nullptr) return ended->continuation_;
      ended->unwrapping_parent_->error_.emplace(std::move(*ended->error_));
      ended = ended->unwrapping_parent_;
    }
    return std::noop_coroutine();
  }

 protected:
  // Runs `self`, the coroutine of this promise, from its beginning to its first suspension, on the caller's
  // stack. `unwrapping_parent` is the caller's promise if an error should end the caller too.
  void StartFor(std::coroutine_handle<> self, std::coroutine_handle<> caller,
                PromiseBase* unwrapping_parent) noexcept {
    continuation_ = caller;
    unwrapping_parent_ = unwrapping_parent;
    starting_ = true;
    self.resume();
    starting_ = false;
  }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      return ended.promise().Leave();
    }
    void await_resume() noexcept {}
  };

  std::optional<Error> error_;

 private:
  std::coroutine_handle<> continuation_ = std::noop_coroutine();
  PromiseBase* unwrapping_parent_ = nullptr;
  bool starting_ = false;  // inside StartFor
};

template <class T>
class [[nodiscard]] Task {
 public:
  class promise_type : public PromiseBase {
   public:
    Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
    FinalAwaiter final_suspend() noexcept { return {}; }

    void return_value(T value) { value_.emplace(std::move(value)); }
    void return_value(Error error) { error_.emplace(std::move(error)); }
    void return_value(Result<T> result) {
      if (result.ok()) {
        value_.emplace(std::move(*result));
      } else {
        error_.emplace(result.error());
      }
    }

    // Starts this coroutine on behalf of `parent`. True: `parent` must stay suspended.
    template <bool kUnwrap, class ParentPromise>
    bool StartFor(std::coroutine_handle<ParentPromise> parent) noexcept {
      const Handle self = Handle::from_promise(*this);
      PromiseBase* unwrapping_parent = nullptr;
      if constexpr (kUnwrap) unwrapping_parent = &parent.promise();
      PromiseBase::StartFor(self, parent, unwrapping_parent);
      if (kUnwrap && failed()) {
        parent.promise().Fail(std::move(*error_)).resume();  // may destroy parent and *this
        return true;
      }
      return !failed() && !self.done();
    }

    T TakeValue() {
      assert(value_.has_value());
      return std::move(*value_);
    }
    Result<T> TakeResult() {
      if (failed()) return std::move(*error_);
      return TakeValue();
    }

   private:
    std::optional<T> value_;
  };
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  // Destroying a task that has not ended abandons it: the local variables of its coroutine are destroyed.
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // co_await task: the value; an Error ends the awaiting coroutine.
  auto operator co_await() noexcept { return Awaiter<true>(handle_); }

  // co_await task.Outcome(): the Result, whatever it is.
  auto Outcome() noexcept { return Awaiter<false>(handle_); }

  // False: it was moved from, and nothing else may be called.
  bool valid() const { return handle_ != nullptr; }

  // For executors. Runs until the first suspension; done() says whether the task has ended.
  void Start() { handle_.resume(); }
  bool done() const { return handle_.promise().failed() || handle_.done(); }
  Result<T> TakeResult() { return handle_.promise().TakeResult(); }

 private:
  template <bool kUnwrap>
  class Awaiter {
   public:
    explicit Awaiter(Handle task) noexcept : task_(task) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
      return task_.promise().template StartFor<kUnwrap>(parent);
    }
    auto await_resume() {
      if constexpr (kUnwrap) {
        return task_.promise().TakeValue();
      } else {
        return task_.promise().TakeResult();
      }
    }

   private:
    Handle task_;
  };

  explicit Task(Handle handle) noexcept : handle_(handle) {}

  Handle handle_;
};

}  // namespace farside
