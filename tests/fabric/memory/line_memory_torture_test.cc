// Several threads on the same lines. Every test runs a fixed number of steps: nothing here depends on time,
// and two cores under load are enough.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/memory/line_memory.h"
#include "fabric/memory/own_holds.h"
#include "fabric/memory/region.h"
#include "tests/support/rendezvous.h"
#include "tests/support/sanitized.h"

namespace farside::fabric::memory {
namespace {

// Sanitizers make a step ten times as long, and spread the threads over it all the same.
constexpr int kSteps = kSanitized ? 20'000 : 400'000;

using Line = std::array<uint64_t, kLineBytes / 8>;

FarAddr At(uint64_t offset) { return FarAddr(NodeId{0}, offset); }

// Where a window of 17 lines wraps around the end of the table of sequences, in its middle.
constexpr uint64_t kWrap = (StripeTable::kStripes - 8) * kLineBytes;

class LineMemoryTorture : public testing::Test {
 protected:
  LineMemoryTorture()
      : region_(std::move(*Region::Anonymous(512 * 1024))),
        stripes_(std::make_unique<StripeTable>()),
        memory_(region_.bytes(), *stripes_) {}
  ~LineMemoryTorture() override {
    for (const Sequence& sequence : stripes_->sequences)
      EXPECT_TRUE(IsFree(sequence.load())) << "a line stayed locked";
  }

  template <class T>
  T ReadAs(uint64_t offset) const {
    T value{};
    memory_.Read(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  template <class T>
  void WriteAs(uint64_t offset, const T& value) {
    memory_.Write(offset, std::as_bytes(std::span(&value, 1)));
  }

  // Runs each function on a thread of its own, all from the same moment on, and waits for them.
  static void InParallel(const std::vector<std::function<void()>>& bodies) {
    std::latch all_there(static_cast<ptrdiff_t>(bodies.size()));
    std::vector<std::jthread> threads;
    for (const auto& body : bodies) {
      threads.emplace_back([&] {
        all_there.arrive_and_wait();
        body();
      });
    }
  }

  Region region_;
  std::unique_ptr<StripeTable> stripes_;
  LineMemory memory_;
};

// Given two writers that fill whole lines with one number each time. When two readers copy lines, or the
// inside of lines, meanwhile. Expect that a copy never holds two different numbers.
TEST_F(LineMemoryTorture, LinesAreNeverTorn) {
  std::atomic<int> writers_left = 2;
  const auto write = [&](uint64_t writer) {
    for (uint64_t i = 1; i <= kSteps; ++i) {
      Line line;
      line.fill(2 * i + writer);
      WriteAs(kLineBytes * (i % 2), line);
    }
    --writers_left;
  };
  const auto read = [&] {
    uint64_t torn = 0;
    do {
      for (const uint64_t line : {0, 1}) {
        const Line whole = ReadAs<Line>(kLineBytes * line);
        torn += std::count(whole.begin(), whole.end(), whole[0]) != 8;
        const auto inside = ReadAs<std::array<uint64_t, 5>>(kLineBytes * line + 16);
        torn += std::count(inside.begin(), inside.end(), inside[0]) != 5;
      }
    } while (writers_left > 0);
    EXPECT_EQ(torn, 0u);
  };
  InParallel({[&] { write(0); }, [&] { write(1); }, read, read});
}

// Given a long READ over lines that are each filled with one number. Expect that its lines are whole too,
// although it is no snapshot.
TEST_F(LineMemoryTorture, LinesOfLongReads_AreNeverTorn) {
  constexpr uint64_t kLines = 100;
  std::atomic<bool> writing = true;
  const auto write = [&] {
    for (uint64_t i = 1; i <= kSteps; ++i) {
      Line line;
      line.fill(i);
      WriteAs(kWrap + kLineBytes * (i % kLines), line);
    }
    writing = false;
  };
  const auto read = [&] {
    uint64_t torn = 0;
    do {
      const auto lines = ReadAs<std::array<Line, kLines>>(kWrap);
      for (const Line& line : lines) torn += std::count(line.begin(), line.end(), line[0]) != 8;
    } while (writing);
    EXPECT_EQ(torn, 0u);
  };
  InParallel({write, read});
}

// The words of a snapshot while one thread raises the first, the second, ... and the last by one, again and
// again: some that are one ahead, then the rest.
template <class Words>
bool IsSnapshot(const Words& words) {
  return std::is_sorted(words.begin(), words.end(), std::greater<>()) && words.front() - words.back() <= 1;
}

// Given a thread that raises the words of a line one after another by FAA and CAS. When another reads the
// line.
// Expect a snapshot: the line as it was at one instant.
TEST_F(LineMemoryTorture, ReadsOfALine_AreSnapshotsAmongAtomics) {
  std::atomic<bool> writing = true;
  const auto raise = [&] {
    for (uint64_t i = 0; i < kSteps; ++i) {
      for (uint64_t word = 0; word < 8; ++word) {
        const FarAddr at = At(8 * word);
        const uint64_t old = memory_.Atomic(word % 2 == 0 ? Faa(at, 1).verb : Cas(at, i, i + 1).verb);
        ASSERT_EQ(old, i);
      }
    }
    writing = false;
  };
  const auto read = [&] {
    uint64_t broken = 0;
    do {
      broken += !IsSnapshot(ReadAs<Line>(0));
    } while (writing);
    EXPECT_EQ(broken, 0u);
  };
  InParallel({raise, read, read});
}

// Given a thread that raises a word in each of 17 lines, one line after another, across the end of the table
// of sequences. When others read all of them with one READ of at most 1 KiB. Expect that READ to be a
// snapshot.
TEST_F(LineMemoryTorture, ReadsOfAWindow_AreSnapshots) {
  constexpr uint64_t kLines = 17;
  constexpr uint64_t kStart = kWrap + 32;  // 1 KiB from here ends in the 17th line
  std::atomic<bool> writing = true;
  const auto raise = [&] {
    for (uint64_t i = 1; i <= kSteps / 8; ++i) {
      for (uint64_t line = 0; line < kLines; ++line) {
        const uint64_t offset = kStart + line * kLineBytes - (line == kLines - 1 ? 32 : 0);
        WriteAs(offset, i);
      }
    }
    writing = false;
  };
  const auto read = [&] {
    uint64_t broken = 0;
    do {
      const auto window = ReadAs<std::array<uint64_t, kWindowBytes / 8>>(kStart);
      std::array<uint64_t, kLines> words;
      for (uint64_t line = 0; line < kLines - 1; ++line) words[line] = window[8 * line];
      words[kLines - 1] = window[8 * (kLines - 1) - 4];
      broken += !IsSnapshot(words);
    } while (writing);
    EXPECT_EQ(broken, 0u);
  };
  InParallel({raise, read, read});
}

// Given four threads that raise three words of one line, by FAA, by CAS and by a masked CAS on half of the
// word.
// Expect that no increment is lost and that the other half keeps its bits.
TEST_F(LineMemoryTorture, IncrementsAreNeverLost) {
  constexpr int kThreads = 4;
  constexpr uint64_t kLowHalf = 0xffffffff;
  constexpr uint64_t kHighBits = uint64_t{0xdead} << 32;
  WriteAs(16, kHighBits);
  const auto raise = [&] {
    for (int i = 0; i < kSteps; ++i) {
      memory_.Atomic(Faa(At(0), 1).verb);

      uint64_t guess = 0;
      for (uint64_t old = memory_.Atomic(Cas(At(8), guess, guess + 1).verb); old != guess;
           old = memory_.Atomic(Cas(At(8), guess, guess + 1).verb)) {
        guess = old;
      }

      uint64_t low = 0;
      while (true) {
        const Verb masked = MaskedCas(At(16), 0, low, kLowHalf, low + 1, kLowHalf).verb;
        const uint64_t old = memory_.Atomic(masked);
        if (Succeeds(masked, old)) break;
        low = old & kLowHalf;
      }
    }
  };
  InParallel(std::vector<std::function<void()>>(kThreads, raise));
  EXPECT_EQ(memory_.Load(0), uint64_t{kThreads} * kSteps);
  EXPECT_EQ(memory_.Load(8), uint64_t{kThreads} * kSteps);
  EXPECT_EQ(memory_.Load(16), kHighBits + uint64_t{kThreads} * kSteps);
}

// Given four threads that own neighbouring bytes of two lines, with borders in the middle of words; one of
// them holds no locks, because no other client can reach its bytes. When each writes its own bytes again and
// again. Expect that each always reads back what it wrote.
TEST_F(LineMemoryTorture, WritesNeverTouchTheirNeighbours) {
  constexpr std::array<uint64_t, 5> kBorders = {3, 13, 46, 69, 99};
  const auto own = [&](size_t owner) {
    const uint64_t offset = kBorders[owner];
    std::vector<std::byte> mine(kBorders[owner + 1] - offset);
    std::vector<std::byte> read(mine.size());
    uint64_t disturbed = 0;
    for (int i = 0; i < kSteps; ++i) {
      std::fill(mine.begin(), mine.end(), static_cast<std::byte>(i + static_cast<int>(owner)));
      if (owner == 1) {
        memory_.WriteUnreachable(offset, mine);
      } else {
        memory_.Write(offset, mine);
      }
      memory_.Read(offset, read);
      disturbed += read != mine;
    }
    EXPECT_EQ(disturbed, 0u) << "bytes of owner " << owner;
  };
  InParallel({[&] { own(0); }, [&] { own(1); }, [&] { own(2); }, [&] { own(3); }});
  const auto lines = ReadAs<std::array<std::byte, 2 * kLineBytes>>(0);
  EXPECT_EQ(std::count(lines.begin(), lines.begin() + 3, std::byte{0}), 3) << "bytes before the first owner";
  EXPECT_EQ(std::count(lines.begin() + 99, lines.end(), std::byte{0}), 29) << "bytes after the last owner";
}

// Given three writers that change the lines of a window until they are told to stop. When a reader wants a
// number of snapshots of the window first. Expect that it gets them: it takes the locks when nothing else
// helps.
TEST_F(LineMemoryTorture, WritersThatNeverPause_ReadersStillFinish) {
  std::atomic<bool> stop = false;
  const auto write = [&] {
    for (uint64_t i = 0; !stop; ++i) memory_.Atomic(Faa(At(kWrap + (i % 16) * kLineBytes), 1).verb);
  };
  const auto read = [&] {
    uint64_t last_sum = 0;
    for (int i = 0; i < kSteps / 10; ++i) {
      const auto lines = ReadAs<std::array<Line, 16>>(kWrap);
      uint64_t sum = 0;
      for (const Line& line : lines) sum += line[0];
      EXPECT_GE(sum, last_sum);
      last_sum = sum;
    }
    stop = true;
  };
  InParallel({write, write, write, read});
}

// Given a line whose writer has not finished. When others read a window with it, CAS it and write it. Expect
// that they wait for the writer, see what it wrote, and that a reader leaves the sequences as they were.
TEST_F(LineMemoryTorture, UnfinishedWriter_IsWaitedFor) {
  Sequence& sequence = stripes_->sequences[0];
  const uint64_t held = StripeTable::kStripes * kLineBytes;  // in the middle of the window at kWrap
  for (int round = 0; round < 20; ++round) {
    const uint64_t free = sequence.load();
    sequence = free + kTheNode;
    std::atomic<int> started = 0;
    std::vector<std::jthread> others;
    others.emplace_back([&] {
      ++started;
      const auto lines = ReadAs<std::array<Line, 16>>(kWrap);
      EXPECT_GE(lines[8][0], 100u);
    });
    others.emplace_back([&] {
      ++started;
      EXPECT_GE(memory_.Load(held), 100u);
    });
    others.emplace_back([&] {
      ++started;
      EXPECT_GE(memory_.Atomic(Cas(At(held), 5, 6).verb), 100u) << "a CAS that fails has to wait too";
    });
    while (started < 3) std::this_thread::yield();
    for (int i = 0; i < 50; ++i) std::this_thread::yield();
    // What the unfinished writer does at last, by the same rules.
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(region_.bytes().data() + held)).store(100);
    sequence = free + kOneChange;
    others.clear();
    EXPECT_EQ(sequence.load(), free + kOneChange);
    EXPECT_EQ(stripes_->sequences[StripeTable::kStripes - 1].load(), 0u);

    sequence = free + kOneChange + kTheNode;
    started = 0;
    others.emplace_back([&] {
      ++started;
      EXPECT_EQ(memory_.Atomic(Cas(At(held), 100, 101).verb), 100u);
    });
    others.emplace_back([&] {
      ++started;
      WriteAs(held + 8, uint64_t{7});
    });
    while (started < 2) std::this_thread::yield();
    for (int i = 0; i < 50; ++i) std::this_thread::yield();
    sequence = free + 2 * kOneChange;
    others.clear();
    EXPECT_EQ(memory_.Load(held), 101u);
    EXPECT_EQ(sequence.load(), free + 4 * kOneChange);
    memory_.Store(held, 0);
  }
}

// Given threads of a node that change and read the same lines, in all the ways in which they hold them, while
// another thread frees what the node does not hold again and again. Expect that it takes no line away from
// them, so that no change is lost; and that lines which none of them holds are freed, also while they wait
// for them.
TEST_F(LineMemoryTorture, NodesThreads_KeepWhatTheyHold_AndWaitForNoStray) {
  constexpr uint64_t kLines = 16;
  constexpr uint64_t kThreads = 3;
  constexpr uint64_t kStrays = 200;
  OwnHolds all;
  std::array<OwnHold, kThreads> holds;
  std::atomic<uint64_t> running = kThreads;
  const auto use = [&](uint64_t self) {
    all.Add(holds[self]);
    LineMemory memory(region_.bytes(), *stripes_, holds[self], nullptr);
    std::array<Line, kLines> window;
    for (uint64_t i = 0; i < kSteps / 4; ++i) {
      const uint64_t line = kWrap + i % kLines * kLineBytes;
      memory.Atomic(Faa(At(line), 1).verb);
      memory.Atomic(Cas(At(line), ~uint64_t{0}, 0).verb);  // fails
      memory.Write(line + 8 * (self + 1), std::as_bytes(std::span(&i, 1)));
      memory.Read(kWrap, std::as_writable_bytes(std::span(window)));
    }
    all.Remove(holds[self]);
    --running;
  };
  uint64_t strays = 0;
  uint64_t freed = 0;
  const auto free = [&] {
    for (uint64_t i = 0; running != 0; ++i) {
      Sequence& sequence = stripes_->sequences[i % StripeTable::kStripes];
      uint64_t value = sequence.load();
      if (strays < kStrays && IsFree(value) && sequence.compare_exchange_strong(value, value + kTheNode))
        ++strays;
      freed += memory_.FreeStrays({}, all);
    }
  };
  InParallel({[&] { use(0); }, [&] { use(1); }, [&] { use(2); }, free});
  EXPECT_GT(strays, 0u);
  EXPECT_EQ(freed, strays);
  uint64_t sum = 0;
  for (const Line& line : ReadAs<std::array<Line, kLines>>(kWrap)) sum += line[0];
  EXPECT_EQ(sum, kThreads * (kSteps / 4));
}

// Given two threads, each of which writes its own line and then looks at the other's (by READ, or by a CAS
// that fails), both at the same moment. Expect that at least one of them sees the other's WRITE, again and
// again: a completed WRITE counts for every client, even if its words have not left the core yet.
TEST_F(LineMemoryTorture, WriteThenLook_NeverMissEachOther) {
  constexpr uint64_t kRounds = kSteps / 10;
  for (const bool by_cas : {false, true}) {
    Rendezvous rendezvous;
    std::array<std::vector<uint64_t>, 2> seen = {std::vector<uint64_t>(kRounds + 1),
                                                 std::vector<uint64_t>(kRounds + 1)};
    const auto play = [&](uint64_t self) {
      const uint64_t other = 1 - self;
      for (uint64_t round = 1; round <= kRounds; ++round) {
        rendezvous.Meet(self, round);
        WriteAs(self * kLineBytes, round);
        const uint64_t look_at = other * kLineBytes;
        seen[self][round] =
            by_cas ? memory_.Atomic(Cas(At(look_at), ~uint64_t{0}, 0).verb) : ReadAs<uint64_t>(look_at);
      }
    };
    InParallel({[&] { play(0); }, [&] { play(1); }});
    uint64_t missed = 0;
    for (uint64_t round = 1; round <= kRounds; ++round)
      missed += seen[0][round] < round && seen[1][round] < round;
    EXPECT_EQ(missed, 0u);
    WriteAs(0, uint64_t{0});
    WriteAs(kLineBytes, uint64_t{0});
  }
}

}  // namespace
}  // namespace farside::fabric::memory
