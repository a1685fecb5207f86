// A client's side of a protocol in which every request is answered in order: requests are collected and sent
// together, answers taken one at a time as they arrive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "bench/peers/parsed.h"
#include "bench/peers/stream.h"

namespace farside::peers {

template <class Answer, Parsed (*kParse)(std::string_view, Answer&, size_t&)>
class Conversation {
 public:
  // `request_bytes` and `answer_bytes` of a whole batch: then nothing is allocated later, and a batch needs
  // few calls.
  Conversation(Stream stream, size_t request_bytes, size_t answer_bytes)
      : stream_(std::move(stream)), inbox_(std::clamp(answer_bytes, kSmallestInbox, kLargestInbox)) {
    request_.reserve(request_bytes);
  }

  // What Send will send. Append to it.
  std::string& request() { return request_; }

  // All of it, with one system call unless the server is slow to read. Servers answer while they read, and
  // stop reading when the client does not take the answers; so this takes them where it would have to wait.
  Status Send() {
    std::string_view rest = request_;
    while (true) {
      const Result<size_t> sent = stream_.Send(rest);
      if (!sent.ok()) return sent.error();
      rest.remove_prefix(*sent);
      if (rest.empty()) break;
      const Result<bool> answered = stream_.AwaitEither();
      if (!answered.ok()) return answered.error();
      if (!*answered) continue;
      if (Status filled = inbox_.Fill(stream_, Wait::kBlock); !filled.ok()) return filled;
    }
    request_.clear();
    return OkStatus();
  }

  // Views in the answer hold until the next call.
  Status Receive(Answer& answer, Wait wait) {
    while (true) {
      size_t consumed = 0;
      switch (kParse(inbox_.unread(), answer, consumed)) {
        case Parsed::kComplete: inbox_.Consume(consumed); return OkStatus();
        case Parsed::kMalformed: return Error(ErrorCode::kCorrupt, "the server's answer makes no sense");
        case Parsed::kMore: break;
      }
      if (Status filled = inbox_.Fill(stream_, wait); !filled.ok()) return filled;
    }
  }

 private:
  static constexpr size_t kSmallestInbox = size_t{16} << 10;
  static constexpr size_t kLargestInbox = size_t{16} << 20;

  Stream stream_;
  Inbox inbox_;
  std::string request_;
};

}  // namespace farside::peers
