// All that clients may come to know, and what each does next.
//
// A program is deterministic: what it does follows from the answers to its trips. So the sequence of
// answers *is* the local state of a client, and all of them form a tree per client. A node of it is such a
// sequence. What the client does there (which operations begin and end, which trip it posts next) is found
// out once, by running the program from the start with these answers, and is kept. The search itself then
// moves numbers around.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/exhaustive/actor.h"
#include "check/exhaustive/conclusion.h"
#include "check/exhaustive/intern.h"
#include "check/exhaustive/monitor.h"
#include "check/exhaustive/request.h"
#include "check/exhaustive/scenario.h"
#include "farside/result.h"

namespace farside::check::exhaustive {

// What a client does between two trips.
struct Mark {
  bool is_request = false;  // it posts a trip that no client waits for; else, an operation begins or ends
  bool is_invocation = false;
  uint32_t number = 0;  // of the request, or of the event

  friend bool operator==(const Mark&, const Mark&) = default;
};

enum class Ending : uint8_t {
  kTrip,     // waits for a trip
  kDone,     // the program has ended
  kGaveUp,   // the program has ended with an error
  kHanging,  // waits for something that is not in flight
};

struct Node {
  uint32_t parent = 0;
  uint32_t observation = 0;  // that led here from the parent
  uint32_t actor = 0;
  uint32_t depth = 0;

  // The marks fall into three parts. The first ones, up to the first invocation, take place as soon as the
  // client is here. Then come operations that need no trip, and trips that no client waits for: they take
  // place one by one at any time. The last ones are invocations, and take place when the next trip begins.
  std::vector<Mark> marks;
  uint32_t first_part = 0;   // marks in the first part
  uint32_t second_part = 0;  // marks in the first and the second part

  std::vector<uint32_t>
      deaths;  // events, should the client die in its next trip: operations lose their answer

  // Set if the program promised that only its place matters: when the marks have taken place, the client is
  // there, like every client that came to the same place on another way.
  std::optional<uint32_t> continues_at;

  bool preparing = true;  // its next trip comes before its first operation
  Ending ending = Ending::kTrip;
  uint32_t request = 0;        // of kTrip
  uint64_t fingerprint = 0;    // of the trip
  std::optional<Error> error;  // of kGaveUp
};

class ObservationTree {
 public:
  // The scenario and the monitor must outlive the tree.
  ObservationTree(const Scenario& scenario, Monitor& monitor);

  // Node numbers 0, 1, ... are the roots of the participants.
  const Node& operator[](uint32_t node) const { return nodes_[node]; }
  const Request& request(uint32_t number) const { return requests_[number]; }

  // Where the client of `node` is when its trip has been answered.
  uint32_t Child(uint32_t node, uint32_t observation);

  // ---- observations: answers to a trip as far as they are known, or an error
  // No answers yet: all bytes are zero.
  uint32_t Blank(const Request& request);
  // One with more answers. Only the finished one gets a number.
  void Draft(uint32_t observation);
  bool drafting() const { return drafting_; }
  void AddToDraft(size_t answer_at, std::span<const std::byte> answer);
  uint32_t FinishDraft();
  uint32_t Reply(std::string_view reply);  // of a Call, which stands alone in its trip
  uint32_t Failure(const Error& error);

  uint64_t runs() const { return runs_; }
  // Why nodes can no longer be trusted: some bound was exceeded, or a program is not repeatable.
  const std::optional<Problem>& problem() const { return problem_; }

 private:
  friend class ReplayWire;

  void Report(Conclusion conclusion, std::string what);
  void Expand(uint32_t node);
  void PartMarks(Node& node) const;
  void Merge(uint32_t node, uint64_t place, size_t marks_before);
  uint32_t AddRequest(uint32_t actor, uint32_t connection, fabric::Order order,
                      std::span<const fabric::Verb> verbs);

  const Scenario& scenario_;
  Monitor& monitor_;
  std::deque<Node> nodes_;
  std::deque<Request> requests_;
  std::map<uint64_t, uint32_t> request_numbers_;  // by actor and fingerprint
  std::map<uint64_t, uint32_t> places_;           // see Actor::Forget
  Interner observations_;
  NumberMap children_;  // {node, observation} to node
  std::vector<std::byte> scratch_;
  std::vector<std::byte> draft_;
  bool drafting_ = false;
  uint64_t runs_ = 0;
  std::optional<Problem> problem_;
};

}  // namespace farside::check::exhaustive
