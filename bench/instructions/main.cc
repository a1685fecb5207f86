// `farside_instructions ENGINE`: operations of a session on an embedded pool, for callgrind to count. It
// measures nothing itself: instructions.py runs it, and counts what happens inside of the functions whose
// names begin with Measured.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "farside/farside.h"

namespace farside::instructions {

constexpr size_t kRecords = 10'000;
constexpr size_t kValueBytes = 64;
constexpr size_t kBatch = 64;
constexpr size_t kWarmUp = 2 * kRecords;  // operations before anything is counted
// instructions.py knows these three.
constexpr size_t kRounds = 4;
constexpr size_t kOperations = 1000;  // of a round: Get and Put
constexpr size_t kBatches = 50;       // of a round: MultiGet

template <class T>
T OrExit(Result<T> result) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "farside_instructions: %s\n", result.error().ToString().c_str());
  std::exit(1);
}

class Records {
 public:
  Records() : value_(kValueBytes, 'v') {
    for (size_t i = 0; i < kRecords; ++i) {
      const std::string digits = std::to_string(i);
      keys_.push_back("user" + std::string(12 - digits.size(), '0') + digits);
    }
  }

  // In steps of a prime that does not divide the number of records: all of them in turn, and neighbours in
  // time are no neighbours in the table.
  const std::string& NextKey() {
    last_ = (last_ + 7919) % keys_.size();
    return keys_[last_];
  }
  const std::string& value() const { return value_; }

 private:
  std::vector<std::string> keys_;
  std::string value_;
  size_t last_ = 0;
};

// With C names and left alone by the optimizer, so that callgrind finds them.
extern "C" {

[[gnu::noinline, gnu::noipa]] void MeasuredGets(Session& session, const Table& table, Records& records,
                                                std::string& value, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!OrExit(session.Get(table, records.NextKey(), value))) std::abort();
  }
}

[[gnu::noinline, gnu::noipa]] void MeasuredPuts(Session& session, const Table& table, Records& records,
                                                size_t count) {
  for (size_t i = 0; i < count; ++i) OrExit(session.Put(table, records.NextKey(), records.value()));
}

[[gnu::noinline, gnu::noipa]] void MeasuredMultiGets(Session& session, const Table& table, Records& records,
                                                     std::vector<GetItem>& items, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    for (GetItem& item : items) item.key = records.NextKey();
    OrExit(session.MultiGet(table, items));
  }
}

}  // extern "C"

// A session that comes and goes makes all others notice what was freed, so that the memory of replaced values
// is used again, as it is in a program that runs for long. The pool's own thread would do that too, but at
// times of its own.
void LetFreedMemoryReturn(Pool& pool) { OrExit(OrExit(pool.NewSession()).Close()); }

void Run(const char* engine) {
  // A long lease: the pool's own thread rests meanwhile.
  Pool pool = OrExit(Pool::Open("embedded:?size=256MiB", {.lease = std::chrono::hours(1)}));
  const Table table = OrExit(pool.CreateTable("records", {.engine = engine, .options = {}}));
  Session session = OrExit(pool.NewSession());
  Records records;
  std::string value;
  std::vector<GetItem> items(kBatch);
  const auto round = [&](size_t operations, size_t batches) {
    LetFreedMemoryReturn(pool);
    MeasuredPuts(session, table, records, operations);
    LetFreedMemoryReturn(pool);
    MeasuredGets(session, table, records, value, operations);
    MeasuredMultiGets(session, table, records, items, batches);
  };
  round(kWarmUp, kWarmUp / kBatch);
  for (size_t i = 0; i < kRounds; ++i) round(kOperations, kBatches);
  OrExit(session.Close());
  OrExit(pool.Close());
}

}  // namespace farside::instructions

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: farside_instructions ENGINE\n");
    return 2;
  }
  farside::instructions::Run(argv[1]);
  return 0;
}
