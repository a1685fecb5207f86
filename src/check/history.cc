#include "check/history.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"

namespace farside::check {
namespace {

constexpr size_t kLongestPrinted = 40;  // bytes of a key or value that are shown in full
constexpr size_t kShortened = 16;       // bytes shown of a longer one
constexpr size_t kWidestText = 64;      // of a row of a chart, before its bar
constexpr size_t kWidestChart = 160;    // columns of bars

[[maybe_unused]] bool Fits(Kind kind, const Outcome& outcome) {
  switch (kind) {
    case Kind::kGet:
    case Kind::kSeen: return std::holds_alternative<Found>(outcome);
    case Kind::kPut: return std::holds_alternative<Stored>(outcome);
    case Kind::kInsert:
    case Kind::kUpdate:
    case Kind::kDelete:
    case Kind::kCompareAndSet: return std::holds_alternative<Applied>(outcome);
    case Kind::kIncrement: return std::holds_alternative<Counted>(outcome);
    case Kind::kScan:
    case Kind::kLast: return std::holds_alternative<Scanned>(outcome);
  }
  return false;
}

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':' || c == '/';
}

std::string Quoted(std::string_view bytes) { return fmt::format("\"{}\"", Escape(bytes)); }

// "k1 to k5", the end not included.
std::string RangeOf(const Operation& operation) {
  return fmt::format("{} to {}", Printable(operation.key),
                     operation.to.has_value() ? Printable(*operation.to) : "the end");
}

std::string ArgumentsOf(const Operation& operation) {
  std::string key = Printable(operation.key);
  switch (operation.kind) {
    case Kind::kGet:
    case Kind::kDelete: return key;
    case Kind::kPut:
    case Kind::kInsert:
    case Kind::kUpdate: return fmt::format("{}, {}", key, Printable(operation.value));
    case Kind::kCompareAndSet:
      return fmt::format("{}, {}, {}", key, Printable(operation.expected), Printable(operation.value));
    case Kind::kIncrement: return fmt::format("{}, {}", key, operation.delta);
    case Kind::kScan: return fmt::format("{}, {}", RangeOf(operation), operation.limit);
    case Kind::kLast: return RangeOf(operation);
    case Kind::kSeen: return key;
  }
  return key;
}

std::string RecordsOf(const Scanned& scanned) {
  std::string text;
  for (const Record& record : scanned.records) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", Printable(record.key), Printable(record.value));
  }
  return text.empty() ? "nothing" : text;
}

std::string AnswerOf(const Operation& operation) {
  if (operation.refused()) return fmt::format("refused: {}", operation.why);
  if (operation.maybe()) return "no answer";
  if (const auto* found = std::get_if<Found>(&operation.outcome)) {
    return found->value ? Printable(*found->value) : "absent";
  }
  if (const auto* stored = std::get_if<Stored>(&operation.outcome)) {
    if (!stored->inserted) return "ok";
    return *stored->inserted ? "inserted" : "replaced";
  }
  if (const auto* applied = std::get_if<Applied>(&operation.outcome)) {
    return applied->applied ? "applied" : "not applied";
  }
  if (const auto* scanned = std::get_if<Scanned>(&operation.outcome)) {
    return RecordsOf(*scanned) + (scanned->more ? ", and more" : "");
  }
  return fmt::format("#{}", std::get<Counted>(operation.outcome).value);
}

std::string CallAndAnswer(const Operation& operation) {
  if (operation.kind == Kind::kSeen)
    return fmt::format("{} -> {}: {}", operation.scan, Printable(operation.key), AnswerOf(operation));
  return fmt::format("{} -> {}", CallOf(operation), AnswerOf(operation));
}

// Columns of a chart: one per event of the operations shown, however far apart their numbers are.
class Columns {
 public:
  explicit Columns(std::span<const Operation> operations) {
    for (const Operation& operation : operations) {
      events_.push_back(operation.invoked);
      if (operation.returned != kNever) events_.push_back(operation.returned);
    }
    std::sort(events_.begin(), events_.end());
    spacing_ = std::min<size_t>(3, kWidestChart / std::max<size_t>(1, events_.size()));
  }

  bool TooMany() const { return spacing_ == 0; }
  size_t Width() const { return spacing_ * events_.size(); }
  size_t Of(uint64_t event) const {
    auto at = std::lower_bound(events_.begin(), events_.end(), event);
    return spacing_ * static_cast<size_t>(at - events_.begin());
  }

 private:
  std::vector<uint64_t> events_;
  size_t spacing_;
};

std::string Bar(const Operation& operation, const Columns& columns) {
  const size_t begin = columns.Of(operation.invoked);
  std::string bar(begin, ' ');
  bar += '|';
  if (operation.returned == kNever) {
    bar.append(columns.Width() - begin, '~');
    return bar;
  }
  bar.append(columns.Of(operation.returned) - begin - 1, '=');
  return bar + (operation.refused() ? 'x' : '|');
}

std::string TextOf(const Operation& operation) {
  std::string text = CallAndAnswer(operation);
  if (text.size() > kWidestText) text.replace(kWidestText - 3, std::string::npos, "...");
  return text;
}

std::string EventsOf(const Operation& operation) {
  if (operation.returned == kNever) return fmt::format("{}..", operation.invoked);
  return fmt::format("{}..{}", operation.invoked, operation.returned);
}

}  // namespace

OpId History::Invoke(int client, const Call& call) {
  if (size_ == operations_.size()) operations_.emplace_back();
  Operation& operation = operations_[size_];
  operation.client = client;
  operation.kind = call.kind;
  operation.fate = Fate::kPending;
  operation.key.assign(call.key);
  operation.value.assign(call.value);
  operation.expected.assign(call.expected);
  operation.delta = call.delta;
  operation.to.reset();
  if (call.to.has_value()) operation.to.emplace(*call.to);
  operation.limit = call.limit;
  operation.scan.clear();
  operation.invoked = events_++;
  operation.returned = kNever;
  operation.why.clear();
  return OpId{static_cast<uint32_t>(size_++)};
}

void History::Return(OpId id, Outcome outcome) {
  Operation& operation = PendingOperation(id);
  assert(Fits(operation.kind, outcome));
  operation.fate = Fate::kAnswered;
  operation.returned = events_++;
  operation.outcome = std::move(outcome);
}

// Takes no event number: nothing is ordered after an operation that may still happen.
void History::LoseAnswer(OpId id) { PendingOperation(id).fate = Fate::kMaybe; }

void History::Refuse(OpId id, std::string why) {
  Operation& operation = PendingOperation(id);
  operation.fate = Fate::kRefused;
  operation.returned = events_++;
  operation.why = std::move(why);
}

void History::Clear() {
  size_ = 0;
  events_ = 0;
}

const Operation& History::operator[](OpId id) const {
  assert(static_cast<size_t>(id) < size_);
  return operations_[static_cast<size_t>(id)];
}

Operation& History::PendingOperation(OpId id) {
  assert(static_cast<size_t>(id) < size_);
  Operation& operation = operations_[static_cast<size_t>(id)];
  assert(operation.fate == Fate::kPending);
  return operation;
}

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kGet: return "Get";
    case Kind::kPut: return "Put";
    case Kind::kInsert: return "Insert";
    case Kind::kUpdate: return "Update";
    case Kind::kDelete: return "Delete";
    case Kind::kCompareAndSet: return "CompareAndSet";
    case Kind::kIncrement: return "Increment";
    case Kind::kScan: return "Scan";
    case Kind::kLast: return "Last";
    case Kind::kSeen: return "Seen";
  }
  return "unknown kind";
}

std::string Printable(std::string_view bytes) {
  const bool printable = std::all_of(bytes.begin(), bytes.end(), IsPrintableAscii);
  if (bytes.size() == 8 && !printable) return fmt::format("#{}", LoadU64(AsBytes(bytes).data()));
  if (bytes.size() > kLongestPrinted) {
    return fmt::format("{}...({} bytes, hash {:08x})", Quoted(bytes.substr(0, kShortened)), bytes.size(),
                       static_cast<uint32_t>(Hash64(bytes)));
  }
  const bool word = !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), IsWordCharacter);
  // The word "absent" is what a Get of nothing prints.
  return word && bytes != "absent" ? std::string(bytes) : Quoted(bytes);
}

std::string CallOf(const Operation& operation) {
  return fmt::format("{}({})", Name(operation.kind), ArgumentsOf(operation));
}

std::string ToString(const Operation& operation) {
  return fmt::format("client {}: {}", operation.client, CallAndAnswer(operation));
}

std::string Chart(std::span<const Operation> operations) {
  std::vector<const Operation*> rows;
  for (const Operation& operation : operations) rows.push_back(&operation);
  std::sort(rows.begin(), rows.end(),
            [](const Operation* a, const Operation* b) { return a->invoked < b->invoked; });

  size_t events_width = 0, client_width = 0, text_width = 0;
  for (const Operation* row : rows) {
    events_width = std::max(events_width, EventsOf(*row).size());
    client_width = std::max(client_width, fmt::formatted_size("{}", row->client));
    text_width = std::max(text_width, TextOf(*row).size());
  }
  const Columns columns(operations);
  std::string chart;
  for (const Operation* row : rows) {
    chart += fmt::format("{:>{}}  client {:<{}}  ", EventsOf(*row), events_width, row->client, client_width);
    chart += columns.TooMany() ? CallAndAnswer(*row)
                               : fmt::format("{:<{}}  {}", TextOf(*row), text_width, Bar(*row, columns));
    chart += '\n';
  }
  return chart;
}

}  // namespace farside::check
