// What clients asked of a table and what they were told, in the order in which it happened.
//
// A history is a list of operations. Each has an invocation and, unless its client never heard back, an
// end; these are numbered by the order of the calls to the recorder, so that equal runs give equal
// histories. No clock is involved: an operation precedes another if it ended before the other began.
//
// A client may have any number of operations in flight. The recorder is not synchronized: threads share
// one behind a mutex, and call Invoke before the operation starts and Return after it ended.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "farside/record.h"

namespace farside::check {

enum class Kind : uint8_t {
  kGet,
  kPut,     // insert or replace
  kInsert,  // only if absent
  kUpdate,  // only if present
  kDelete,
  kCompareAndSet,  // only if present with the expected value
  kIncrement,      // adds to an 8-byte little-endian counter; absent counts as 0
  kScan,           // the first records of a range, in order
  kLast,           // the last record of a range
  kSeen,           // what a scan or a Last says about one key of its range (check/scans.h); never invoked
};

// The arguments of an operation. Views, copied by Invoke: make a Call where it is passed.
struct Call {
  Kind kind = Kind::kGet;
  std::string_view key = {};                // kScan, kLast: where the range begins
  std::string_view value = {};              // kPut, kInsert, kUpdate, kCompareAndSet: the value to store
  std::string_view expected = {};           // kCompareAndSet
  uint64_t delta = 0;                       // kIncrement; wraps around
  std::optional<std::string_view> to = {};  // kScan, kLast: before which it ends, if anywhere
  uint64_t limit = 0;                       // kScan: records at most

  static Call Get(std::string_view key) { return {.kind = Kind::kGet, .key = key}; }
  static Call Put(std::string_view key, std::string_view value) {
    return {.kind = Kind::kPut, .key = key, .value = value};
  }
  static Call Insert(std::string_view key, std::string_view value) {
    return {.kind = Kind::kInsert, .key = key, .value = value};
  }
  static Call Update(std::string_view key, std::string_view value) {
    return {.kind = Kind::kUpdate, .key = key, .value = value};
  }
  static Call Delete(std::string_view key) { return {.kind = Kind::kDelete, .key = key}; }
  static Call CompareAndSet(std::string_view key, std::string_view expected, std::string_view value) {
    return {.kind = Kind::kCompareAndSet, .key = key, .value = value, .expected = expected};
  }
  static Call Increment(std::string_view key, uint64_t delta = 1) {
    return {.kind = Kind::kIncrement, .key = key, .delta = delta};
  }
  static Call Scan(std::string_view from, std::optional<std::string_view> to, uint64_t limit) {
    return {.kind = Kind::kScan, .key = from, .to = to, .limit = limit};
  }
  static Call Last(std::string_view from = "", std::optional<std::string_view> to = std::nullopt) {
    return {.kind = Kind::kLast, .key = from, .to = to};
  }
};

// The answers. Each kind of operation has exactly one type of answer.
struct Found {  // kGet, kSeen
  std::optional<std::string> value;
  friend bool operator==(const Found&, const Found&) = default;
};
struct Stored {  // kPut; engines that know it also say whether the key was absent before
  std::optional<bool> inserted;
  friend bool operator==(const Stored&, const Stored&) = default;
};
struct Applied {  // kInsert, kUpdate, kDelete, kCompareAndSet: whether the condition held
  bool applied = false;
  friend bool operator==(const Applied&, const Applied&) = default;
};
struct Counted {  // kIncrement: the new value
  uint64_t value = 0;
  friend bool operator==(const Counted&, const Counted&) = default;
};
struct Scanned {                // kScan, kLast
  std::vector<Record> records;  // as they came
  bool more = false;            // kScan: it said that there may be more beyond them
  friend bool operator==(const Scanned&, const Scanned&) = default;
};
using Outcome = std::variant<Found, Stored, Applied, Counted, Scanned>;

enum class Fate : uint8_t {
  kPending,   // no answer so far; counts as kMaybe
  kAnswered,  // took effect between invocation and end, as the outcome says
  kMaybe,     // the answer was lost: took effect at some time after the invocation, or never
  kRefused,   // ended with an error that promises that nothing was changed
};

inline constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

struct Operation {
  int client = 0;
  Kind kind = Kind::kGet;
  Fate fate = Fate::kPending;
  std::string key;
  std::string value;                   // as in Call
  std::string expected;                // as in Call
  uint64_t delta = 0;                  // as in Call
  std::optional<std::string> to = {};  // as in Call
  uint64_t limit = 0;                  // as in Call
  std::string scan = {};       // of a kSeen operation: the call whose answer it is part of, for people
  uint64_t invoked = 0;        // event number
  uint64_t returned = kNever;  // event number; kNever for kPending and kMaybe
  Outcome outcome;             // of a kAnswered operation
  std::string why;             // of a kRefused operation: the error

  bool answered() const { return fate == Fate::kAnswered; }
  bool refused() const { return fate == Fate::kRefused; }
  bool maybe() const { return fate == Fate::kPending || fate == Fate::kMaybe; }
};

enum class OpId : uint32_t {};

class History {
 public:
  OpId Invoke(int client, const Call& call);

  // Each operation is ended at most once, by one of these.
  void Return(OpId id, Outcome outcome);  // the type of the outcome must fit the kind
  void LoseAnswer(OpId id);               // kOutcomeUnknown, or the client died
  void Refuse(OpId id, std::string why);  // an error that promises that nothing was changed

  // Forgets everything but keeps the memory.
  void Clear();

  // In order of invocation; valid until the next Invoke or Clear.
  std::span<const Operation> operations() const { return {operations_.data(), size_}; }
  const Operation& operator[](OpId id) const;
  uint64_t events() const { return events_; }  // the number of the next event

 private:
  Operation& PendingOperation(OpId id);

  std::vector<Operation> operations_;  // the first size_ are in use, the rest only keep their memory
  size_t size_ = 0;
  uint64_t events_ = 0;
};

std::string_view Name(Kind kind);  // "CompareAndSet"

// A key or value for people: as it is if it is a plain word, "quoted \x00" otherwise, #7 if it is an
// 8-byte counter (8 bytes that are not all printable), shortened with length and hash if it is long.
std::string Printable(std::string_view bytes);

// "CompareAndSet(k1, v7, v8)", "Scan(k1 to the end, 3)"
std::string CallOf(const Operation& operation);

// "client 2: CompareAndSet(k1, v7, v8) -> applied"
std::string ToString(const Operation& operation);

// A chart with one row per operation, in order of invocation, so that one can see what overlaps:
//
//   0..3  client 0  Put(k1, v7) -> ok         |========|
//   1..2  client 1  Get(k1) -> absent            |==|
//    4..  client 1  Put(k1, v8) -> no answer              |~~~~~~~~~
//   5..6  client 0  Get(k1) -> v8                            |==|
//
// On the left, the event numbers. '~' goes on for ever: the answer was lost. An 'x' ends a refused
// operation. When there are too many events for a screen, there are no bars.
std::string Chart(std::span<const Operation> operations);

}  // namespace farside::check
