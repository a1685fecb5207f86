// Every engine in a pool that is too small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engines/conformance/engine.h"

namespace farside::conformance {
namespace {

constexpr size_t kMany = 1'000'000;

class EngineFullTest : public EngineTest {
 protected:
  EngineFullTest() : EngineTest("embedded:?size=4MiB") {}

  static std::string Key(size_t i) { return "key-" + std::to_string(i); }
  static std::string Value(size_t i) { return std::string(900, static_cast<char>('a' + i % 26)); }

  // Puts records until that fails, and returns how many there are.
  size_t Fill(Session& session, size_t first = 0) {
    for (size_t i = first; i < kMany; ++i) {
      const Status put = session.Put(table_, Key(i), Value(i));
      if (put.ok()) continue;
      EXPECT_EQ(put.error().code(), ErrorCode::kOutOfMemory) << put.error().ToString();
      EXPECT_FALSE(put.error().message().empty());
      return i;
    }
    ADD_FAILURE() << "the pool never became full";
    return kMany;
  }
  void ExpectAll(size_t count) {
    for (size_t i = 0; i < count; ++i) ASSERT_TRUE(Get(Key(i)) == Value(i)) << i;
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, EngineFullTest, testing::ValuesIn(RoomyEngines()), LabelOf);

TEST_P(EngineFullTest, AFullPool_SaysSo_AndKeepsWhatItHas) {
  // When records are put until the pool is full. Expect a clear error, all records that were taken, and not
  // the one that was not.
  const size_t count = Fill(session_);
  EXPECT_GT(count, 1000u);
  ExpectAll(count);
  EXPECT_EQ(Get(Key(count)), std::nullopt);
  EXPECT_EQ(All().size(), count);
  // What was being retired while the pool filled may have become free since: then there is room for a little
  // more, and the pool is full again.
  const size_t later = Fill(session_, count);
  ExpectAll(later);
  EXPECT_EQ(Get(Key(later)), std::nullopt);
}

TEST_P(EngineFullTest, IncrementOfAValueThatIsNoCounter_SaysSoFirst) {
  // Given a full pool, in which there is no room for a counter either. When a value of another size than a
  // counter's is incremented. Expect an error that more room would not mend.
  const size_t count = Fill(session_);
  bool full = false;
  for (size_t i = 0; i < kMany && !full; ++i)
    full = !session_.Put(table_, "small-" + std::to_string(i), "8 bytes.").ok();
  ASSERT_TRUE(full);
  for (const size_t i : {size_t{0}, count / 2, count - 1}) {
    const Result<uint64_t> incremented = session_.Increment(table_, Key(i));
    ASSERT_FALSE(incremented.ok());
    EXPECT_EQ(incremented.error().code(), ErrorCode::kInvalidArgument) << incremented.error().ToString();
  }
}

TEST_P(EngineFullTest, ChangesThatAreRefused_NeedNoRoom) {
  // Given a full pool. When keys are inserted that are there, and others changed that are not, or that have
  // another value. Expect that each is refused, and not that there is no room.
  const size_t count = Fill(session_);
  bool full = false;
  for (size_t i = 0; i < kMany && !full; ++i)
    full = !session_.Put(table_, "small-" + std::to_string(i), "8 bytes.").ok();
  ASSERT_TRUE(full);
  for (const size_t i : {size_t{0}, count / 2, count - 1}) {
    EXPECT_FALSE(Must(session_.Insert(table_, Key(i), Value(i))));
    EXPECT_FALSE(Must(session_.CompareAndSet(table_, Key(i), "another value", Value(i))));
    EXPECT_FALSE(Must(session_.Update(table_, Key(kMany + i), Value(i))));
    EXPECT_FALSE(Must(session_.CompareAndSet(table_, Key(kMany + i), Value(i), Value(i))));
    EXPECT_FALSE(Must(session_.Delete(table_, Key(kMany + i))));
  }
  ExpectAll(count);
}

TEST_P(EngineFullTest, Deletes_MakeRoomAgain) {
  // Given a full pool. When everything is deleted and put again, some times. Expect about as much room as at
  // first.
  const size_t count = Fill(session_);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < count; ++i) Must(session_.Delete(table_, Key(i)));
    const size_t again = Fill(session_);
    EXPECT_GE(again, count * 9 / 10);
    ExpectAll(again);
  }
}

TEST_P(EngineFullTest, ValuesThatFillChunks_ComeBack) {
  // Given a pool that was full of values that take a chunk each, which has 8 KiB in so small a pool, and of
  // which an eighth was deleted. When one is put and another deleted, time and again. Expect that there is
  // room for each, however long the table holds deleted values back.
  const std::string value(6000, 'v');
  size_t count = 0;
  while (session_.Put(table_, Key(count), value).ok()) ++count;
  ASSERT_GT(count, 300u);
  size_t deleted = 0;
  while (deleted < count / 8) ASSERT_TRUE(Must(session_.Delete(table_, Key(deleted++))));
  for (size_t i = 0; i < 200; ++i) {
    const Status put = session_.Put(table_, Key(count + i), value);
    ASSERT_TRUE(put.ok()) << "value " << i << ": " << put.error().ToString();
    ASSERT_TRUE(Must(session_.Delete(table_, Key(deleted++)))) << i;
  }
}

TEST_P(EngineFullTest, DeletesByAnotherSession_MakeRoomForThisOne) {
  // Given a pool that one session has filled. When another deletes half of it, and stays idle. Expect that
  // the first one has room for more.
  const size_t count = Fill(session_);
  Session other = Must(pool_.NewSession());
  for (size_t i = 0; i < count; i += 2) ASSERT_TRUE(Must(other.Delete(table_, Key(i))));
  // If new keys need new nodes, which are of another size than the blocks that were freed, fewer fit: into
  // what is left of the last chunk of nodes.
  const size_t back = count / (GetParam().traits.grows_by_nodes ? 20 : 4);
  for (size_t i = 0; i < back; ++i) {
    const Status put = session_.Put(table_, Key(count + i), Value(count + i));
    ASSERT_TRUE(put.ok()) << "record " << i << " of " << back << ": " << put.error().ToString();
  }
}

TEST_P(EngineFullTest, ABatchThatDoesNotFit_HasItemsThatDid) {
  // Given a batch that is larger than the pool. Expect that each item says whether it is there, and that it
  // is so.
  constexpr size_t kItems = 8000;
  std::vector<std::string> keys;
  for (size_t i = 0; i < kItems; ++i) keys.push_back(Key(i));
  const std::string value = Value(0);
  std::vector<PutItem> puts;
  for (const std::string& key : keys) puts.push_back({.key = key, .value = value});
  const Status put = session_.MultiPut(table_, puts);
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code(), ErrorCode::kOutOfMemory);
  size_t fitted = 0;
  for (const PutItem& item : puts) {
    EXPECT_EQ(Get(item.key).has_value(), item.status.ok());
    fitted += item.status.ok() ? 1 : 0;
  }
  EXPECT_GT(fitted, 1000u);
  EXPECT_LT(fitted, kItems);
}

}  // namespace
}  // namespace farside::conformance
